/* SPDX-License-Identifier: ISC */
/*
 * utf8_check: against a decoder of a few obvious lines, over every sequence
 * that matters, every cut and every alignment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "buf.h"
#include "utf8.h"
#include "util.h"

/* Length of the one character at s, 0 if there is none. */
static size_t
decode(const uint8_t *s, size_t n)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = s[0] < 0x80   ? 1
		     : s[0] < 0xc0 ? 0
		     : s[0] < 0xe0 ? 2
		     : s[0] < 0xf0 ? 3
		     : s[0] < 0xf8 ? 4
				   : 0;
	uint32_t c = len > 1 ? s[0] & (0xff >> (len + 1)) : s[0];

	if (len == 0 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	return len;
}

static bool
is_utf8(const uint8_t *s, size_t n)
{
	while (n > 0) {
		size_t len = decode(s, n);

		if (len == 0)
			return false;
		s += len;
		n -= len;
	}
	return true;
}

static void
check(const uint8_t *s, size_t n)
{
	bool whole = utf8_check(0, s, n) == 0;
	uint32_t state = 0;

	for (size_t i = 0; i < n; i++)
		state = utf8_check(state, s + i, 1);
	if (whole != is_utf8(s, n) || whole != (state == 0))
		fail_msg(
		    "%02x %02x %02x %02x (%zu)", s[0], s[1], s[2], s[3], n);
}

/* All that begin beyond ASCII, and some that begin in it. */
static void
test_short_sequences(void **state)
{
	for (uint32_t v = 0; v < 1u << 24; v += v < 0x800000 ? 0x3f01 : 1) {
		uint8_t s[4] = { (uint8_t)(v >> 16), (uint8_t)(v >> 8),
			(uint8_t)v };

		for (size_t n = 0; n <= 3; n++)
			check(s, n);
	}
}

static void
test_four_bytes(void **state)
{
	static const uint8_t edges[] = { 0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f,
		0xa0, 0xbf, 0xc0, 0xff };

	for (size_t i = 0; i < 16 * 256 * nitems(edges) * nitems(edges); i++) {
		size_t j = i / (16 * 256);
		uint8_t s[4] = { (uint8_t)(0xf0 + i % 16), (uint8_t)(i / 16),
			edges[j % nitems(edges)], edges[j / nitems(edges)] };

		check(s, sizeof(s));
	}
}

/* The refusal stands at the very byte, and stays. */
static void
test_refused_at_once(void **state)
{
	static const char *const bad[] = { "\x80", "\xbf", "\xc0", "\xc1",
		"\xf5", "\xff", "\xe0\x9f", "\xed\xa0", "\xf0\x8f", "\xf4\x90",
		"\xc2\x41", "\xe1\x80\x41", "\xf1\x80\x80\x41", "\xc2\xc2" };

	for (size_t i = 0; i < nitems(bad); i++) {
		const uint8_t *s = (const uint8_t *)bad[i];
		size_t n = strlen(bad[i]);

		assert_int_not_equal(utf8_check(0, s, n - 1), 1);
		assert_int_equal(utf8_check(0, s, n), 1);
		assert_int_equal(utf8_check(1, (const uint8_t *)"a", 1), 1);
	}
}

/* The fast path over ASCII must not jump over anything. */
static void
test_inside_ascii(void **state)
{
	uint8_t text[160];

	for (size_t n = 1; n < sizeof(text); n++) {
		for (size_t at = 0; at < n; at++) {
			memset(text, 'a', sizeof(text));
			text[at] = 0xff;
			assert_int_equal(utf8_check(0, text, n), 1);
			text[at] = 0xc2;
			assert_int_equal(
			    utf8_check(0, text, n) == 1, at + 1 < n);
			if (at + 1 < n)
				text[at + 1] = 0xb5;
			assert_int_equal(
			    utf8_check(0, text, n) == 0, at + 1 < n);
		}
	}
}

static void
check_escape(const char *text, const char *expected)
{
	struct buf b;

	buf_init(&b, 1000);
	utf8_escape(&b, text, strlen(text));
	buf_put(&b, "", 1);
	assert_string_equal((char *)b.data, expected);
	buf_clear(&b);
}

static void
test_escape(void **state)
{
	check_escape("plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80",
	    "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
	check_escape("\x1b[2J\n\x7f", "\\x1b[2J\\x0a\\x7f");
	/* CSI of one character, and the byte alone */
	check_escape("\xc2\x9b"
		     "2J\x9b"
		     "2J",
	    "\\xc2\\x9b2J\\x9b2J");
	/* what turns text around, and separators */
	check_escape("a\xe2\x80\xae"
		     "b",
	    "a\\xe2\\x80\\xaeb");
	check_escape("\xe2\x81\xa6\xe2\x80\xa8\xd8\x9c",
	    "\\xe2\\x81\\xa6\\xe2\\x80\\xa8\\xd8\\x9c");
	/* cut, overlong, a surrogate */
	check_escape("\xe2\x82", "\\xe2\\x82");
	check_escape("\xc0\xaf"
		     "x",
	    "\\xc0\\xafx");
	check_escape("\xed\xa0\x80", "\\xed\\xa0\\x80");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_short_sequences),
		cmocka_unit_test(test_four_bytes),
		cmocka_unit_test(test_refused_at_once),
		cmocka_unit_test(test_inside_ascii),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
