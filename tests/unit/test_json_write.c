/* SPDX-License-Identifier: ISC */
/*
 * json: numbers as integers, members by name, and the writer.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "json.h"
#include "json_text.h"

#define BAD "\xef\xbf\xbd" /* U+FFFD */
#define TEXT(literal)                                                          \
	{                                                                      \
		literal, sizeof(literal) - 1                                   \
	}

/* A number and what it is as i64 and u64; the other is -ERANGE. */
static const struct number_row {
	const char *text;
	bool is_i64, is_u64;
	int64_t i64;
	uint64_t u64;
} number_rows[] = {
	{ "0", true, true, 0, 0 },
	{ "7", true, true, 7, 7 },
	{ "-1", true, false, -1, 0 },
	{ "9223372036854775807", true, true, INT64_MAX, INT64_MAX },
	{ "9223372036854775808", false, true, 0, 1ull << 63 },
	{ "-9223372036854775807", true, false, -INT64_MAX, 0 },
	{ "-9223372036854775808", true, false, INT64_MIN, 0 },
	{ "-9223372036854775809", false, false, 0, 0 },
	{ "18446744073709551615", false, true, 0, UINT64_MAX },
	{ "18446744073709551609", false, true, 0, UINT64_MAX - 6 },
	{ "18446744073709551616", false, false, 0, 0 },
	{ "18446744073709551620", false, false, 0, 0 },
	{ "28446744073709551615", false, false, 0, 0 },
	{ "184467440737095516150", false, false, 0, 0 },
	{ "-18446744073709551615", false, false, 0, 0 },
	{ "99999999999999999999999999", false, false, 0, 0 },
	{ "1.0", false, false, 0, 0 },
	{ "1.5", false, false, 0, 0 },
	{ "0.0", false, false, 0, 0 },
	{ "1e2", false, false, 0, 0 },
	{ "1E0", false, false, 0, 0 },
	{ "1e999", false, false, 0, 0 },
	{ "-1e-2", false, false, 0, 0 },
	/* not numbers */
	{ "\"7\"", false, false, 0, 0 },
	{ "null", false, false, 0, 0 },
	{ "true", false, false, 0, 0 },
	{ "[7]", false, false, 0, 0 },
	{ "{}", false, false, 0, 0 },
};

static void
test_numbers(void **state)
{
	for (size_t i = 0; i < nitems(number_rows); i++) {
		const struct number_row *row = &number_rows[i];
		int64_t i64 = 42;
		uint64_t u64 = 42;
		struct json_doc doc;
		int ri, ru;

		assert_int_equal(
		    json_parse(&doc, row->text, strlen(row->text)), 0);
		ri = json_to_i64(doc.root, &i64);
		ru = json_to_u64(doc.root, &u64);
		if (ri != (row->is_i64 ? 0 : -ERANGE) ||
		    (row->is_i64 && i64 != row->i64))
			fail_msg("%s: %d, %lld", row->text, ri, (long long)i64);
		if (ru != (row->is_u64 ? 0 : -ERANGE) ||
		    (row->is_u64 && u64 != row->u64))
			fail_msg("%s: %d, %llu", row->text, ru,
			    (unsigned long long)u64);
		json_clear(&doc);
	}
}

static void
test_get(void **state)
{
	static const char text[] = "{\"a\":\"x\",\"ab\":2,\"\":\"e\","
				   "\"n\\u0000\":4,\"o\":{\"in\":5}}";
	struct json_doc doc;
	uint64_t n;

	assert_int_equal(json_parse(&doc, text, sizeof(text) - 1), 0);
	assert_int_equal(doc.root->count, 5);
	assert_true(json_is(json_get(doc.root, "a"), "x"));
	assert_int_equal(json_to_u64(json_get(doc.root, "ab"), &n), 0);
	assert_int_equal(n, 2);
	assert_true(json_is(json_get(doc.root, ""), "e"));
	assert_null(json_get(doc.root, "n"));
	assert_null(json_get(doc.root, "A"));
	assert_null(json_get(doc.root, "in"));
	assert_non_null(json_get(json_get(doc.root, "o"), "in"));
	assert_null(json_get(json_get(doc.root, "a"), "a"));
	assert_null(json_get(NULL, "a"));
	json_clear(&doc);
}

static void
test_is(void **state)
{
	static const char text[] = "[\"ab\",\"ab\\u0000\",\"\",7,null]";
	const struct json_value *v;
	struct json_doc doc;

	assert_int_equal(json_parse(&doc, text, sizeof(text) - 1), 0);
	v = doc.root->first;
	assert_true(json_is(v, "ab"));
	assert_false(json_is(v, "a"));
	assert_false(json_is(v, "abc"));
	assert_false(json_is(v->next, "ab"));
	assert_true(json_is(v->next->next, ""));
	assert_false(json_is(v->next->next->next, "7"));
	assert_false(json_is(v->next->next->next->next, "null"));
	assert_false(json_is(NULL, ""));
	json_clear(&doc);
}

/* Every piece is usable, aligned, apart from the others and keeps its bytes. */
static void
test_alloc(void **state)
{
	static const size_t sizes[] = { 0, 1, 15, 16, 17, 1000, 1024, 1025,
		65536, 65537, 300000 };
	uint8_t *pieces[nitems(sizes) * 3];
	struct json_doc doc;

	assert_int_equal(json_parse(&doc, "[]", 2), 0);
	for (size_t i = 0; i < nitems(pieces); i++) {
		size_t n = sizes[i % nitems(sizes)];

		pieces[i] = json_alloc(&doc, n);
		assert_non_null(pieces[i]);
		assert_int_equal((uintptr_t)pieces[i] % 16, 0);
		memset(pieces[i], (int)i + 1, n);
	}
	for (size_t i = 0; i < nitems(pieces); i++)
		for (size_t k = 0; k < sizes[i % nitems(sizes)]; k++)
			if (pieces[i][k] != i + 1)
				fail_msg("piece %zu, byte %zu", i, k);
	json_clear(&doc);
	assert_null(doc.root);
}

/* The bytes of a string and the JSON between the quotes. */
static const struct string_row {
	struct slice bytes;
	const char *json;
} string_rows[] = {
	{ TEXT(""), "" },
	{ TEXT("abc XYZ 019 /~"), "abc XYZ 019 /~" },
	{ TEXT("\""), "\\\"" },
	{ TEXT("\\"), "\\\\" },
	{ TEXT("\b\f\n\r\t"), "\\b\\f\\n\\r\\t" },
	{ TEXT("\0"), "\\u0000" },
	{ TEXT("a\0b"), "a\\u0000b" },
	{ TEXT("\x01\x07\x0b\x0e\x1b\x1f"),
	    "\\u0001\\u0007\\u000b\\u000e\\u001b\\u001f" },
	{ TEXT("~\x7f\xc2\x80\xc2\x85\xc2\x9f\xc2\xa0"),
	    "~\\u007f\\u0080\\u0085\\u009f\xc2\xa0" },
	{ TEXT("\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xae\xe2\x80\xaf"),
	    "\xe2\x80\xa7\\u2028\\u202e\xe2\x80\xaf" },
	{ TEXT(
	      "\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa"),
	    "\\u061c\\u200e\\u200f\\u2066\\u2069\xe2\x81\xaa" },
	{ TEXT("\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80"),
	    "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80" },
	{ TEXT("\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf"),
	    "\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf" },
	{ TEXT("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"),
	    "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf" },
	/* not UTF-8: a byte, a piece, an overlong form, a surrogate */
	{ TEXT("\xff"), BAD },
	{ TEXT("a\xff\xfe"
	       "b"),
	    "a" BAD BAD "b" },
	{ TEXT("\x80"), BAD },
	{ TEXT("\xc3"), BAD },
	{ TEXT("\xc3("), BAD "(" },
	{ TEXT("\xc3\""), BAD "\\\"" },
	{ TEXT("\xc0\x80"), BAD BAD },
	{ TEXT("\xc1\xbf"), BAD BAD },
	{ TEXT("\xed\xa0\x80"), BAD BAD BAD },
	{ TEXT("\xe0\x9f\xbf"), BAD BAD BAD },
	{ TEXT("\xf0\x8f\xbf\xbf"), BAD BAD BAD BAD },
	{ TEXT("\xf4\x90\x80\x80"), BAD BAD BAD BAD },
	{ TEXT("\xf5\x80\x80\x80"), BAD BAD BAD BAD },
	{ TEXT("\xc3\xc3\xbc"), BAD "\xc3\xbc" },
	{ TEXT("\xe2\x28\xa1"), BAD "(" BAD },
};

static void
test_strings(void **state)
{
	for (size_t i = 0; i < nitems(string_rows); i++) {
		const struct string_row *row = &string_rows[i];
		char *copy = exact_copy(row->bytes);
		struct json_writer w;
		char expect[128];
		struct buf b;

		snprintf(expect, sizeof(expect), "[\"%s\",{\"%s\":1}]",
		    row->json, row->json);
		buf_init(&b, 1024);
		json_writer_init(&w, &b);
		json_begin(&w, '[');
		json_string(&w, copy, row->bytes.len);
		json_begin(&w, '{');
		json_slice_key(&w, (struct slice){ copy, row->bytes.len });
		json_u64(&w, 1);
		json_end(&w, '}');
		json_end(&w, ']');
		buf_put_u8(&b, '\0');
		if (strcmp((char *)b.data, expect) != 0)
			fail_msg(
			    "row %zu: %s, not %s", i, (char *)b.data, expect);
		buf_clear(&b);
		free(copy);
	}
}

/* All bytes, written and read again. */
static void
test_ascii_round_trip(void **state)
{
	struct json_writer w;
	struct json_doc doc;
	char all[128];
	struct buf b;

	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	buf_init(&b, 4096);
	json_writer_init(&w, &b);
	json_string(&w, all, sizeof(all));
	assert_int_equal(json_parse(&doc, (char *)b.data, b.len), 0);
	assert_int_equal(doc.root->text.len, sizeof(all));
	assert_memory_equal(doc.root->text.ptr, all, sizeof(all));
	json_clear(&doc);
	buf_clear(&b);
}

static void
test_integers(void **state)
{
	static const int64_t i64[] = { 0, -1, 10, -10, INT64_MAX, INT64_MIN };
	static const uint64_t u64[] = { 0, 9, 10, 1ull << 63, UINT64_MAX };
	struct json_writer w;
	struct buf b;

	buf_init(&b, 1024);
	json_writer_init(&w, &b);
	json_begin(&w, '[');
	for (size_t i = 0; i < nitems(i64); i++)
		json_i64(&w, i64[i]);
	for (size_t i = 0; i < nitems(u64); i++)
		json_u64(&w, u64[i]);
	json_end(&w, ']');
	check_written(&b,
	    "[0,-1,10,-10,9223372036854775807,-9223372036854775808,"
	    "0,9,10,9223372036854775808,18446744073709551615]");
}

static void
put_everything(struct json_writer *w)
{
	json_begin(w, '{');
	json_key_begin(w, "a", '[');
	json_null(w);
	json_bool(w, true);
	json_bool(w, false);
	json_begin(w, '[');
	json_end(w, ']');
	json_begin(w, '{');
	json_end(w, '}');
	json_cstring(w, "x\"y");
	json_end(w, ']');
	json_key(w, "b");
	json_raw(w, "[1, 2]", 6);
	json_slice_key(w, SLICE("c\n"));
	json_i64(w, -7);
	json_key_base64(w, "d", "\xff\xfe", 2);
	json_key_string(w, "e", "yes", 1);
	json_key_cstring(w, "f", "z\n");
	json_key_u64(w, "g", UINT64_MAX);
	json_key_i64(w, "h", INT64_MIN);
	json_key_bool(w, "i", false);
	json_end(w, '}');
}

/* Commas between values, none behind keys and brackets. */
static void
test_commas(void **state)
{
	struct json_writer w;
	struct buf b;

	buf_init(&b, 1024);
	json_writer_init(&w, &b);
	put_everything(&w);
	check_written(&b, "{\"a\":[null,true,false,[],{},\"x\\\"y\"],"
			  "\"b\":[1, 2],\"c\\n\":-7,\"d\":\"//4=\","
			  "\"e\":\"y\",\"f\":\"z\\n\","
			  "\"g\":18446744073709551615,"
			  "\"h\":-9223372036854775808,\"i\":false}");
}

static void
test_base64(void **state)
{
	static const struct {
		const char *bytes, *json;
	} rows[] = { { "", "[\"\",\"\"]" }, { "f", "[\"Zg==\",\"Zg==\"]" },
		{ "fo", "[\"Zm8=\",\"Zm8=\"]" },
		{ "foobar", "[\"Zm9vYmFy\",\"Zm9vYmFy\"]" } };

	for (size_t i = 0; i < nitems(rows); i++) {
		struct json_writer w;
		struct buf b;

		buf_init(&b, 1024);
		json_writer_init(&w, &b);
		json_begin(&w, '[');
		json_base64(&w, rows[i].bytes, strlen(rows[i].bytes));
		json_base64(&w, rows[i].bytes, strlen(rows[i].bytes));
		json_end(&w, ']');
		check_written(&b, rows[i].json);
	}
}

/* A buffer that is full says so and takes nothing beyond its limit. */
static void
test_full_buffer(void **state)
{
	for (size_t limit = 0; limit < 64; limit++) {
		struct json_writer w;
		struct buf b;

		buf_init(&b, limit);
		json_writer_init(&w, &b);
		put_everything(&w);
		assert_true(b.failed);
		assert_true(b.len <= limit);
		buf_clear(&b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_get),
		cmocka_unit_test(test_is),
		cmocka_unit_test(test_alloc),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_ascii_round_trip),
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_commas),
		cmocka_unit_test(test_base64),
		cmocka_unit_test(test_full_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
