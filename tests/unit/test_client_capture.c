/* SPDX-License-Identifier: ISC */
/*
 * capture: the beginning and the end, never more than asked for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "run.h"

#define BYTES 100
#define LINES 8

static const struct test_case {
	const char *input;
	const char *expect; /* NULL: the input as it is */
} cases[] = {
	{ "", NULL },
	{ "no newline", NULL },
	{ "1\n2\n3\n4\n5\n6\n7\n8\n", NULL },
	{ "1\n2\n3\n4\n5\n6\n7\n8", NULL },
	{ "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
	    "1\n2\n3\n4\n[2 bytes left out of 18 bytes in 9 lines]\n"
	    "6\n7\n8\n9\n" },
	{ "\n\n\n\n\n\n\n\n\n\n",
	    "\n\n\n\n[2 bytes left out of 10 bytes in 10 lines]\n\n\n\n\n" },
	{ "0123456789012345678901234567890123456789012345678a"
	  "9876543210"
	  "b012345678901234567890123456789012345678901234567z",
	    "0123456789012345678901234567890123456789012345678a"
	    "\n[10 bytes left out of 110 bytes in 1 lines]\n"
	    "b012345678901234567890123456789012345678901234567z" },
};

/* In pieces of so many bytes: the same. */
static void
check(const struct test_case *t, size_t piece)
{
	const char *expect = t->expect ? t->expect : t->input;
	size_t len = strlen(t->input);
	struct capture c;
	struct buf text;
	bool truncated;

	capture_init(&c, BYTES, LINES);
	for (size_t at = 0; at < len; at += piece)
		capture_put(
		    &c, t->input + at, len - at < piece ? len - at : piece);
	buf_init(&text, 1000);
	truncated = capture_text(&c, &text);
	assert_true(truncated == (t->expect != NULL));
	if (text.len != strlen(expect) ||
	    (text.len > 0 && memcmp(text.data, expect, text.len) != 0))
		fail_msg("in pieces of %zu: `%.*s', not `%s'", piece,
		    (int)text.len, (const char *)text.data, expect);
	assert_int_equal(c.bytes, len);
	buf_clear(&text);
	capture_clear(&c);
}

static void
test_cases(void **state)
{
	for (size_t i = 0; i < nitems(cases); i++)
		for (size_t piece = 1; piece < 130; piece++)
			check(&cases[i], piece);
}

static void
test_memory(void **state)
{
	static char block[65536];
	struct capture c;
	struct buf text;

	memset(block, 'x', sizeof(block));
	capture_init(&c, CAPTURE_BYTES, CAPTURE_LINES);
	for (int i = 0; i < 1000; i++)
		capture_put(&c, block, sizeof(block));
	assert_true(c.head.cap + c.tail.cap <= 4 * CAPTURE_BYTES);
	buf_init(&text, 2 * CAPTURE_BYTES);
	assert_true(capture_text(&c, &text));
	assert_true(text.len <= CAPTURE_BYTES + 100);
	assert_false(text.failed);
	buf_clear(&text);
	capture_clear(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
