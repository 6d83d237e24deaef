/* SPDX-License-Identifier: ISC */
/*
 * json: long strings, which the parser is given the quotes of alone, mean the
 * same as short ones, and errors behind them stand where they are.
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
#include "json_scan.h"
#include "json_text.h"

#define LONG_BYTES 10000

static char plain[LONG_BYTES + 1];

static int
setup(void **state)
{
	for (size_t i = 0; i < LONG_BYTES; i++)
		plain[i] = (char)('0' + i % 64);
	for (char *p = plain; *p != '\0'; p++)
		if (*p == '"' || *p == '\\')
			*p = 'x';
	return 0;
}

static int
parse(
    struct json_doc *doc, struct buf *b, const char *before, const char *after)
{
	buf_init(b, 1u << 20);
	buf_puts(b, before);
	buf_puts(b, plain);
	buf_puts(b, after);
	return json_parse(doc, (const char *)b->data, b->len);
}

static void
test_value(void **state)
{
	struct json_doc doc;
	struct buf b;
	const struct json_value *v;

	assert_int_equal(parse(&doc, &b, "{\"a\\\"\":1,\"b\":\"",
			     "\",\"c\":[\"x\\ny\",null]}"),
	    0);
	v = json_get(doc.root, "b");
	assert_true(json_is(v, plain));
	assert_true(json_is(json_get(doc.root, "c")->first, "x\ny"));
	assert_int_equal(doc.root->count, 3);
	json_clear(&doc);
	buf_clear(&b);
}

static void
test_key(void **state)
{
	struct json_doc doc;
	struct buf b;

	assert_int_equal(parse(&doc, &b, "{\"", "\":{\"k\":2}}"), 0);
	assert_true(slice_equal(
	    doc.root->first->key, (struct slice){ plain, LONG_BYTES }));
	assert_int_equal(doc.root->first->count, 1);
	json_clear(&doc);
	buf_clear(&b);
}

/* More of them than are cut, and the same key in two lengths of text. */
static void
test_many(void **state)
{
	struct json_doc doc;
	struct buf b;
	size_t n = 0;

	buf_init(&b, 1u << 20);
	for (int i = 0; i < 30; i++) {
		buf_puts(&b, i ? ",\"" : "[\"");
		buf_puts(&b, plain + i);
		buf_puts(&b, "\"");
	}
	buf_puts(&b, "]");
	assert_int_equal(json_parse(&doc, (const char *)b.data, b.len), 0);
	for (struct json_value *v = doc.root->first; v != NULL; v = v->next)
		assert_true(json_is(v, plain + n++));
	assert_int_equal(n, 30);
	json_clear(&doc);
	buf_clear(&b);
}

static const struct {
	const char *before, *after, *error;
	size_t column; /* behind what is before */
} faults[] = {
	{ "[\"", "\" 1]", "expected value", LONG_BYTES + 3 },
	{ "[\"", "\"", "EOF while parsing a list", LONG_BYTES + 1 },
	{ "[\"", "", "EOF while parsing a list", LONG_BYTES },
	{ "[\"", "\"]x", "trailing characters", LONG_BYTES + 3 },
	{ "[\"", "\",\"\\ud800\"]", "unexpected end of hex escape",
	    LONG_BYTES + 9 },
	{ "[\"", "\",\"\xff\"]", "invalid unicode code point", LONG_BYTES + 4 },
	{ "[\"", "\",\f1]", "expected value", LONG_BYTES + 3 },
	{ "[\"", "\",\"\x01\"]", "expected value", LONG_BYTES + 3 },
	/* outside of any string */
	{ "[\"a\"", "\"b\"]", "expected value", 1 },
	{ "[\"a\\\"", "\x01\"]", "expected value", LONG_BYTES },
};

static void
test_faults(void **state)
{
	for (size_t i = 0; i < nitems(faults); i++) {
		struct json_doc doc;
		struct buf b;
		int r = parse(&doc, &b, faults[i].before, faults[i].after);
		char error[JSON_ERROR_MAX];

		snprintf(error, sizeof(error), "%s at line 1 column %zu",
		    faults[i].error,
		    strlen(faults[i].before) + faults[i].column);
		if (r != -EBADMSG || strcmp(doc.error, error) != 0)
			fail_msg("row %zu: %s", i, doc.error);
		json_clear(&doc);
		buf_clear(&b);
	}
}

/* Bytes outside of long plain strings, of which the quotes count. */
static void
test_exceeds(void **state)
{
	static const struct {
		const char *before, *after;
		size_t outside;
	} rows[] = {
		{ "{\"\":\"", "\"}", 7 },
		{ "[\"\\\"\",\"", "\",0]", 11 },
		/* one that ends nowhere, or is not plain */
		{ "[\"", "", LONG_BYTES + 2 },
		{ "[\"", "\\n\"]", LONG_BYTES + 6 },
		{ "[\"\\\\", "\"]", LONG_BYTES + 6 },
		{ "[", "]", LONG_BYTES + 2 },
	};

	for (size_t i = 0; i < nitems(rows); i++) {
		struct buf b;

		buf_init(&b, 1u << 20);
		buf_puts(&b, rows[i].before);
		buf_puts(&b, plain);
		buf_puts(&b, rows[i].after);
		if (json_scan_exceeds((char *)b.data, b.len, rows[i].outside) ||
		    !json_scan_exceeds(
			(char *)b.data, b.len, rows[i].outside - 1))
			fail_msg("row %zu: not %zu", i, rows[i].outside);
		buf_clear(&b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_value),
		cmocka_unit_test(test_key),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_exceeds),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
