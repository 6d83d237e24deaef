/* SPDX-License-Identifier: ISC */
/*
 * json: what is a JSON text here and what is not (doc/protocol.md section 2.3),
 * and the tree that comes out.
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

#define TEXT(literal)                                                          \
	{                                                                      \
		literal, sizeof(literal) - 1                                   \
	}
#define LONE	  "unexpected end of hex escape at "
#define DUPLICATE "duplicate JSON object key "

/* A text and the error: in full, "... " a prefix, "" any. */
static const struct bad_row {
	struct slice text;
	const char *error;
} bad_rows[] = {
	/* nothing, and not JSON */
	{ TEXT(""), "EOF while parsing a value at line 1 column 0" },
	{ TEXT(" "), "EOF while parsing a value at line 1 column 1" },
	{ TEXT("\n"), "EOF while parsing a value at line 2 column 0" },
	{ TEXT("x"), "expected value at line 1 column 1" },
	{ TEXT("]"), "expected value at line 1 column 1" },
	{ TEXT("x {}"), "expected value at line 1 column 1" },
	{ TEXT("\xef\xbb\xbf{}"), "expected value at line 1 column 1" },
	{ TEXT("\0"), "" },
	{ TEXT("\f1"), "expected value at line 1 column 1" },
	{ TEXT("[\v1]"), "expected value at line 1 column 2" },
	{ TEXT("[\v1,\f2]"), "expected value at line 1 column 2" },
	{ TEXT("[1,\f2,\v3]"), "expected value at line 1 column 4" },
	{ TEXT("\xc2\xa0"
	       "1"),
	    "" },
	{ TEXT("True"), "" },
	{ TEXT("tru"), "" },
	{ TEXT("nul"), "" },
	{ TEXT("'a'"), "" },
	{ TEXT("undefined"), "" },
	/* structure */
	{ TEXT("["), "EOF while parsing a list at line 1 column 1" },
	{ TEXT("[1"), "EOF while parsing a list at line 1 column 2" },
	{ TEXT("{"), "EOF while parsing an object at line 1 column 1" },
	{ TEXT("{\"a\":1"), "EOF while parsing an object at line 1 column 6" },
	{ TEXT("[1,]"), "" },
	{ TEXT("[,1]"), "" },
	{ TEXT("[1 2]"), "" },
	{ TEXT("[1}"), "" },
	{ TEXT("[1:2]"), "" },
	{ TEXT("{]"), "" },
	{ TEXT("{,}"), "" },
	{ TEXT("{\"a\"}"), "" },
	{ TEXT("{\"a\":}"), "" },
	{ TEXT("{\"a\":1,}"), "" },
	{ TEXT("{\"a\",1}"), "" },
	{ TEXT("{\"a\":1 \"b\":2}"), "" },
	{ TEXT("{a:1}"), "" },
	{ TEXT("{1:2}"), "" },
	{ TEXT("{null:2}"), "" },
	{ TEXT("{\"a\":"), "EOF " },
	/* comments */
	{ TEXT("/**/1"), "" },
	{ TEXT("//\n1"), "" },
	{ TEXT("[1/**/]"), "" },
	{ TEXT("{} // x"), "trailing characters at line 1 column 4" },
	{ TEXT("# x\n1"), "" },
	/* behind the value */
	{ TEXT("{} x"), "trailing characters at line 1 column 4" },
	{ TEXT("{}x"), "trailing characters at line 1 column 3" },
	{ TEXT("{}{}"), "trailing characters at line 1 column 3" },
	{ TEXT("{}\n\n ]"), "trailing characters at line 3 column 2" },
	{ TEXT("[],"), "trailing characters at line 1 column 3" },
	{ TEXT("{}\0"), "trailing characters at line 1 column 3" },
	{ TEXT("1 2"), "trailing characters at line 1 column 3" },
	{ TEXT("null null"), "trailing characters at line 1 column 6" },
	{ TEXT("\"a\"\"b\""), "trailing characters at line 1 column 4" },
	/* numbers */
	{ TEXT("01"), "" },
	{ TEXT("-01"), "" },
	{ TEXT("[00]"), "" },
	{ TEXT("[1.]"), "" },
	{ TEXT("[.5]"), "" },
	{ TEXT("[+1]"), "" },
	{ TEXT("[-]"), "" },
	{ TEXT("[1e]"), "" },
	{ TEXT("[1e+]"), "" },
	{ TEXT("[1.e1]"), "" },
	{ TEXT("[0x10]"), "" },
	{ TEXT("[1_0]"), "" },
	{ TEXT("NaN"), "expected value at line 1 column 1" },
	{ TEXT("[Infinity]"), "" },
	{ TEXT("[-Infinity]"), "" },
	{ TEXT("-"), "" },
	/* strings */
	{ TEXT("\""), "" },
	{ TEXT("\"a"), "" },
	{ TEXT("\"\\"), "" },
	{ TEXT("\"\\\""), "" },
	{ TEXT("\"\\x41\""), "" },
	{ TEXT("\"\\'\""), "" },
	{ TEXT("\"\\U0041\""), "" },
	{ TEXT("\"\\u004\""), "" },
	{ TEXT("\"\\u004g\""), "" },
	{ TEXT("\"\\u"), "" },
	{ TEXT("\"a\nb\""), "" },
	{ TEXT("\"a\tb\""), "" },
	{ TEXT("\"a\x1f\""), "" },
	{ TEXT("\"a\0b\""), "" },
	/* half a surrogate pair */
	{ TEXT("\"\\ud800\""), LONE },
	{ TEXT("\"\\udbff\""), LONE },
	{ TEXT("\"\\udc00\""), LONE },
	{ TEXT("\"\\uDFFF\""), LONE },
	{ TEXT("\"\\udc00\\ud800\""), LONE },
	{ TEXT("\"\\ud800\\ud800\""), LONE },
	{ TEXT("\"\\ud83d\\u0041\""), LONE },
	{ TEXT("\"\\ud83dxude00\""), LONE },
	{ TEXT("\"\\ud83d\\\\ude00\""), LONE },
	{ TEXT("\"\\\\\\ud83d\""), LONE },
	{ TEXT("\"\\ud83d\\ude00\\ude00\""), LONE },
	{ TEXT("{\"\\ud83d\":1}"), LONE },
	{ TEXT("[1,[{\"a\":\"b\\ud83d\"}]]"), LONE },
	{ TEXT("\"\\ud83d"), "" },
	{ TEXT("\"\\ud83d\\ude0"), "" },
	/* one key twice */
	{ TEXT("{\"id\":1,\"id\":2}"), DUPLICATE "`id` at line 1 column 12" },
	{ TEXT("{\"a\":1,\n\"b\":2,\n \"a\":1}"),
	    DUPLICATE "`a` at line 3 column 4" },
	{ TEXT("{\"\":1,\"\":2}"), DUPLICATE "`` at line 1 column 8" },
	{ TEXT("{\"id\":1,\"\\u0069d\":2}"), DUPLICATE "`id` at " },
	{ TEXT("{\"\\u0069\\u0064\":1,\"id\":2}"), DUPLICATE "`id` at " },
	{ TEXT("{\"a/b\":1,\"a\\/b\":2}"), DUPLICATE "`a/b` at " },
	{ TEXT("{\"\\u00fc\":1,\"\xc3\xbc\":2}"), DUPLICATE "`\xc3\xbc` at " },
	{ TEXT("{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}"), DUPLICATE },
	{ TEXT("{\"a\\u0000\":1,\"a\\u0000\":2}"), DUPLICATE },
	{ TEXT("{\"p\":{\"a\":1,\"a\":1}}"), DUPLICATE "`a` at " },
	{ TEXT("[[[{\"a\":{\"b\":[{\"c\":1,\"c\":1}]}}]]]"),
	    DUPLICATE "`c` at " },
	{ TEXT("{\"a\":{\"a\":1},\"b\":[],\"a\":1}"), DUPLICATE "`a` at " },
};

static void
test_refused(void **state)
{
	for (size_t i = 0; i < nitems(bad_rows); i++) {
		const struct bad_row *row = &bad_rows[i];
		char *copy = exact_copy(row->text);
		struct json_doc doc;
		int r = json_parse(&doc, copy, row->text.len);

		if (r != -EBADMSG || doc.root != NULL ||
		    !error_matches(doc.error, row->error))
			fail_msg("row %zu, %s: %d, %s", i, row->text.ptr, r,
			    r < 0 ? doc.error : "accepted");
		json_clear(&doc);
		free(copy);
	}
}

/* A text and the same as compact text, numbers as they came. */
static const struct good_row {
	struct slice text;
	const char *shown; /* NULL: as it came */
} good_rows[] = {
	{ TEXT("null"), NULL },
	{ TEXT("true"), NULL },
	{ TEXT("false"), NULL },
	{ TEXT("\"\""), NULL },
	{ TEXT("{}"), NULL },
	{ TEXT("[]"), NULL },
	{ TEXT(" \t\r\n{ \t\r\n} \t\r\n"), "{}" },
	{ TEXT("{\"a\":[1,{\"b\":null},[]],\"c\":\"d\"}"), NULL },
	{ TEXT("[[],[[]],{},{\"\":{}}]"), NULL },
	{ TEXT("{\"z\":1,\"a\":2,\"A\":3}"), NULL },
	/* the same name in different objects, and almost the same name */
	{ TEXT("{\"a\":{\"a\":{\"a\":1}}}"), NULL },
	{ TEXT("[{\"a\":1},{\"a\":1}]"), NULL },
	{ TEXT("{\"a\":1,\"A\":1,\"a \":1,\"\":1,\"aa\":1}"), NULL },
	{ TEXT("{\"a\":1,\"a\\u0000\":1,\"a\\u0000b\":1}"), NULL },
	{ TEXT("{\"\xc3\xbc\":1,\"u\xcc\x88\":2}"), NULL },
	{ TEXT("{\"a\":\"a\",\"b\":\"a\"}"), NULL },
	/* numbers are text, however large */
	{ TEXT("[0,-0,1.5,1e999,-1E+05,1.0,100e-2]"), NULL },
	{ TEXT("123456789012345678901234567890"), NULL },
	{ TEXT("[18446744073709551616,0.1e1,-1.25E-10]"), NULL },
	{ TEXT(" 7 "), "7" },
	/* strings */
	{ TEXT("\"\\u0041\\u00fc\\u20AC\\uffff\""),
	    "\"A\xc3\xbc\xe2\x82\xac\xef\xbf\xbf\"" },
	{ TEXT("\"\\ud83d\\ude00\\uDBFF\\uDFFF\""),
	    "\"\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\"" },
	{ TEXT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""),
	    "\"\\\"\\\\/\\b\\f\\n\\r\\t\"" },
	{ TEXT("\"a\\u0000b\""), NULL },
	{ TEXT("\"\\\\ud800\""), NULL },
	{ TEXT("\"\\\\\\\\udc00\""), NULL },
	{ TEXT("\"\\ud7ff\\ue000\""), "\"\xed\x9f\xbf\xee\x80\x80\"" },
	{ TEXT("\"/* no comment */ // x\""), NULL },
	{ TEXT("\"\x7f\""), "\"\\u007f\"" },
	{ TEXT("{\"\\u0061\":\"\\u0062\"}"), "{\"a\":\"b\"}" },
};

static void
test_accepted(void **state)
{
	for (size_t i = 0; i < nitems(good_rows); i++) {
		const struct good_row *row = &good_rows[i];
		const char *expect = row->shown ? row->shown : row->text.ptr;
		char *copy = exact_copy(row->text);
		struct json_doc doc;
		struct buf b;

		if (json_parse(&doc, copy, row->text.len) != 0)
			fail_msg(
			    "row %zu, %s: %s", i, row->text.ptr, doc.error);
		if (strcmp(show_tree(&b, doc.root), expect) != 0)
			fail_msg("row %zu, %s: %s", i, row->text.ptr,
			    (const char *)b.data);
		buf_clear(&b);
		json_move(&doc, copy, row->text.len, row->text.ptr);
		memset(copy, 'x', row->text.len);
		free(copy);
		assert_string_equal(show_tree(&b, doc.root), expect);
		buf_clear(&b);
		json_clear(&doc);
	}
}

/* RFC 3629: a character in a string and in a key. */
static const struct utf8_row {
	const char *bytes;
	bool good;
} utf8_rows[] = {
	{ "\xc2\x80", true },
	{ "\xdf\xbf", true },
	{ "\xe0\xa0\x80", true },
	{ "\xed\x9f\xbf", true },
	{ "\xee\x80\x80", true },
	{ "\xef\xbf\xbf", true },
	{ "\xf0\x90\x80\x80", true },
	{ "\xf4\x8f\xbf\xbf", true },
	{ "\x80", false },
	{ "\xbf", false },
	{ "\xc3", false },
	{ "\xc3(", false },
	{ "\xe2\x82", false },
	{ "\xe2(\xa1", false },
	{ "\xe2\x82(", false },
	{ "\xf0\x9f\x98", false },
	{ "\xf0\x9f\x98(", false },
	{ "\xc3\xbc\xbc", false },
	{ "\xf8\x88\x80\x80\x80", false },
	{ "\xfe", false },
	{ "\xff", false },
	/* overlong, surrogates, beyond U+10FFFF */
	{ "\xc0\x80", false },
	{ "\xc0\xaf", false },
	{ "\xc1\xbf", false },
	{ "\xe0\x80\xaf", false },
	{ "\xe0\x9f\xbf", false },
	{ "\xf0\x80\x80\xaf", false },
	{ "\xf0\x8f\xbf\xbf", false },
	{ "\xed\xa0\x80", false },
	{ "\xed\xbf\xbf", false },
	{ "\xed\xa0\xbd\xed\xb8\x80", false },
	{ "\xf4\x90\x80\x80", false },
	{ "\xf5\x80\x80\x80", false },
	{ "\xf7\xbf\xbf\xbf", false },
};

static void
test_utf8(void **state)
{
	static const char *const forms[] = { "\"%s\"", "[\"a%sb\"]",
		"{\"%s\":1}", "{\"a\":\"\\n%s\"}" };
	struct json_doc doc;
	char text[64];

	for (size_t i = 0; i < nitems(utf8_rows) * nitems(forms); i++) {
		const struct utf8_row *row = &utf8_rows[i / nitems(forms)];
		int r;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(
		    text, sizeof(text), forms[i % nitems(forms)], row->bytes);
#pragma GCC diagnostic pop
		r = json_parse(&doc, text, strlen(text));
		if (r != (row->good ? 0 : -EBADMSG))
			fail_msg("row %zu, form %zu: %d", i / nitems(forms),
			    i % nitems(forms), r);
		json_clear(&doc);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
