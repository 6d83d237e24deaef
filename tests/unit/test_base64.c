/* SPDX-License-Identifier: ISC */
/*
 * base64: the vectors of RFC 4648, every length against a naive coder, every
 * error with its offset, and not a byte beyond the destination.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base64.h"
#include "util.h"

#define GUARD	    0xa5
#define GUARD_BYTES 64
#define LENGTH_MAX  300
#define MIB	    (1u << 20)

static const char letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* xorshift32: the same bytes in every run. */
static void
fill_random(uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 17;
		seed ^= seed << 5;
		p[i] = (uint8_t)(seed >> 11);
	}
}

/* Bit i of the data, counted from the most significant of the first byte. */
static unsigned
bit_at(const uint8_t *p, size_t n, size_t i)
{
	return i / 8 < n ? p[i / 8] >> (7 - i % 8) & 1u : 0;
}

/* One bit after the other, straight from the RFC's text. */
static size_t
naive_encode(char *dst, const uint8_t *p, size_t n)
{
	size_t at = 0;

	for (size_t bit = 0; bit < n * 8; bit += 6) {
		unsigned v = 0;

		for (size_t i = 0; i < 6; i++)
			v = v << 1 | bit_at(p, n, bit + i);
		dst[at++] = letters[v];
	}
	while (at % 4 != 0)
		dst[at++] = '=';
	return at;
}

/* A destination of n bytes between two walls. */
static uint8_t *
guarded(size_t n)
{
	uint8_t *whole = xmalloc(n + 2 * (size_t)GUARD_BYTES);

	memset(whole, GUARD, n + 2 * (size_t)GUARD_BYTES);
	return whole + GUARD_BYTES;
}

static bool
guards_hold(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < GUARD_BYTES; i++)
		if (p[n + i] != GUARD || *(p - 1 - i) != GUARD)
			return false;
	return true;
}

static void
free_guarded(uint8_t *p)
{
	free(p - GUARD_BYTES);
}

/* From memory of exactly that size, so that a sanitizer sees an overread. */
static ssize_t
decode(void *dst, const char *src, size_t n, char error[BASE64_ERROR_MAX])
{
	_cleanup_free_ char *copy = n > 0 ? xmalloc(n) : NULL;

	memset(error, 0, BASE64_ERROR_MAX);
	if (n > 0)
		memcpy(copy, src, n);
	return base64_decode(dst, n > 0 ? copy : "", n, error);
}

static const struct vector {
	const char *plain, *text;
} vectors[] = {
	{ "", "" },
	{ "f", "Zg==" },
	{ "fo", "Zm8=" },
	{ "foo", "Zm9v" },
	{ "foob", "Zm9vYg==" },
	{ "fooba", "Zm9vYmE=" },
	{ "foobar", "Zm9vYmFy" },
	{ "\xff\xff\xff", "////" },
	{ "\xfb\xef\xbe", "++++" },
	{ "\xff", "/w==" },
	{ "\xfb\xf0", "+/A=" },
};

static void
test_vectors(void **state)
{
	char text[64], error[BASE64_ERROR_MAX], plain[64];

	for (size_t i = 0; i < nitems(vectors); i++) {
		const struct vector *v = &vectors[i];
		size_t len = strlen(v->plain), n = strlen(v->text);

		if (base64_encoded_len(len) != n ||
		    base64_encode(text, v->plain, len) != n ||
		    memcmp(text, v->text, n) != 0)
			fail_msg("encode row %zu: %.*s", i, (int)n, text);
		if (decode(plain, v->text, n, error) != (ssize_t)len ||
		    memcmp(plain, v->plain, len) != 0)
			fail_msg("decode %s: %s", v->text, error);
	}
}

static void
check_length(size_t n, uint32_t seed)
{
	uint8_t bytes[LENGTH_MAX + 1];
	char expect[LENGTH_MAX * 2 + 4], error[BASE64_ERROR_MAX];
	size_t text_len, max;
	uint8_t *text, *back;

	fill_random(bytes, sizeof(bytes), seed);
	text_len = naive_encode(expect, bytes, n);
	max = base64_decoded_max(text_len);
	text = guarded(text_len);
	back = guarded(max);
	if (base64_encoded_len(n) != text_len ||
	    base64_encode((char *)text, bytes, n) != text_len ||
	    memcmp(text, expect, text_len) != 0 || !guards_hold(text, text_len))
		fail_msg("encode %zu bytes, seed %u", n, seed);
	if (decode(back, expect, text_len, error) != (ssize_t)n ||
	    memcmp(back, bytes, n) != 0 || !guards_hold(back, max))
		fail_msg("decode %zu bytes, seed %u: %s", n, seed, error);
	if (base64_decode(text, (char *)text, text_len, error) != (ssize_t)n ||
	    memcmp(text, bytes, n) != 0 || !guards_hold(text, text_len))
		fail_msg("decode %zu bytes in place, seed %u", n, seed);
	free_guarded(text);
	free_guarded(back);
}

static void
test_every_length(void **state)
{
	for (size_t n = 0; n <= LENGTH_MAX; n++)
		for (uint32_t seed = 1; seed <= 8; seed++)
			check_length(n, seed * 2654435761u + (uint32_t)n);
}

/* Source and destination need no alignment. */
static void
test_every_alignment(void **state)
{
	uint8_t bytes[128 + 32], back[128 + 32];
	char text[192 + 32], expect[192], error[BASE64_ERROR_MAX];

	fill_random(bytes, sizeof(bytes), 7);
	for (size_t from = 0; from < 32; from++) {
		size_t n = 97 + from, to = 31 - from;
		size_t len = naive_encode(expect, bytes + from, n);

		assert_int_equal(
		    base64_encode(text + to, bytes + from, n), len);
		assert_memory_equal(text + to, expect, len);
		assert_int_equal(
		    base64_decode(back + to, text + to, len, error), n);
		assert_memory_equal(back + to, bytes + from, n);
	}
}

static const struct error_row {
	struct slice text;
	const char *error;
} errors[] = {
	/* the three of doc/protocol.md section 4 */
	{ { "!!!!", 4 }, "Invalid symbol 33, offset 0." },
	{ { "Zg", 2 }, "Invalid padding" },
	{ { "Zml=", 4 }, "Invalid last symbol 108, offset 2." },
	/* symbols */
	{ { "AAA!", 4 }, "Invalid symbol 33, offset 3." },
	{ { "AAAAAAAA-AAA", 12 }, "Invalid symbol 45, offset 8." },
	{ { "AAA_", 4 }, "Invalid symbol 95, offset 3." },
	{ { "AAAA\nAAAA", 9 }, "Invalid symbol 10, offset 4." },
	{ { "AAAA\r\n", 6 }, "Invalid symbol 13, offset 4." },
	{ { "AAAA ", 5 }, "Invalid symbol 32, offset 4." },
	{ { " AAAA", 5 }, "Invalid symbol 32, offset 0." },
	{ { "AA\0A", 4 }, "Invalid symbol 0, offset 2." },
	{ { "A\303\274A", 4 }, "Invalid symbol 195, offset 1." },
	{ { "AAA\xff", 4 }, "Invalid symbol 255, offset 3." },
	{ { "A,A-", 4 }, "Invalid symbol 44, offset 1." },
	{ { "A@AA", 4 }, "Invalid symbol 64, offset 1." },
	{ { "A[AA", 4 }, "Invalid symbol 91, offset 1." },
	{ { "A`AA", 4 }, "Invalid symbol 96, offset 1." },
	{ { "A{AA", 4 }, "Invalid symbol 123, offset 1." },
	{ { "A:AA", 4 }, "Invalid symbol 58, offset 1." },
	{ { "A.AA", 4 }, "Invalid symbol 46, offset 1." },
	/* padding in the wrong place is a symbol */
	{ { "=AAA", 4 }, "Invalid symbol 61, offset 0." },
	{ { "A=AA", 4 }, "Invalid symbol 61, offset 1." },
	{ { "AA=A", 4 }, "Invalid symbol 61, offset 2." },
	{ { "Zg==Zg==", 8 }, "Invalid symbol 61, offset 2." },
	{ { "Zg===", 5 }, "Invalid symbol 61, offset 2." },
	{ { "AAAA====", 8 }, "Invalid symbol 61, offset 4." },
	/* padding */
	{ { "A", 1 }, "Invalid input length: 1" },
	{ { "AAA", 3 }, "Invalid padding" },
	{ { "AAAAA", 5 }, "Invalid input length: 5" },
	{ { "AAAAAA", 6 }, "Invalid padding" },
	{ { "AAAAAAA", 7 }, "Invalid padding" },
	{ { "Zg=", 3 }, "Invalid padding" },
	{ { "Zm9v=", 5 }, "Invalid symbol 61, offset 4." },
	{ { "Zm9v==", 6 }, "Invalid symbol 61, offset 4." },
	{ { "=", 1 }, "Invalid symbol 61, offset 0." },
	{ { "==", 2 }, "Invalid symbol 61, offset 0." },
	{ { "A=", 2 }, "Invalid symbol 61, offset 1." },
	{ { "AAA==", 5 }, "Invalid symbol 61, offset 3." },
	/* bits that stand for nothing */
	{ { "Zh==", 4 }, "Invalid last symbol 104, offset 1." },
	{ { "Zm9=", 4 }, "Invalid last symbol 57, offset 2." },
	{ { "AAAAAAAAAB==", 12 }, "Invalid last symbol 66, offset 9." },
	{ { "AAAAAAAAAAB=", 12 }, "Invalid last symbol 66, offset 10." },
	{ { "//==", 4 }, "Invalid last symbol 47, offset 1." },
};

static void
test_errors(void **state)
{
	for (size_t i = 0; i < nitems(errors); i++) {
		size_t n = errors[i].text.len, max = base64_decoded_max(n);
		char error[BASE64_ERROR_MAX];
		uint8_t *dst = guarded(max);
		ssize_t r = decode(dst, errors[i].text.ptr, n, error);

		if (r != -EBADMSG || strcmp(error, errors[i].error) != 0)
			fail_msg("row %zu, %s: %zd, %s", i, errors[i].text.ptr,
			    r, error);
		if (!guards_hold(dst, max))
			fail_msg("row %zu: overrun", i);
		free_guarded(dst);
	}
}

/* Any byte at any place of a text long enough for every fast path. */
static void
test_every_symbol_everywhere(void **state)
{
	char text[148], error[BASE64_ERROR_MAX], expect[BASE64_ERROR_MAX];
	uint8_t dst[sizeof(text) / 4 * 3];

	for (size_t at = 0; at < sizeof(text) - 2; at++) {
		for (unsigned c = 0; c < 256; c++) {
			bool good = c != 0 && strchr(letters, (int)c) != NULL;
			ssize_t r;

			memset(text, 'A', sizeof(text));
			text[at] = (char)c;
			snprintf(expect, sizeof(expect),
			    "Invalid symbol %u, offset %zu.", c, at);
			r = decode(dst, text, sizeof(text), error);
			if (good ? r != 111 || error[0] != '\0'
				 : r != -EBADMSG || strcmp(error, expect) != 0)
				fail_msg("%u at %zu: %zd, %s", c, at, r, error);
		}
	}
}

/* Of the 64 last symbols only those with zero bits behind are canonical. */
static void
test_canonical_bits(void **state)
{
	char text[] = "AAA=", error[BASE64_ERROR_MAX];
	uint8_t dst[3];

	for (size_t i = 0; i < 64; i++) {
		text[1] = 'A';
		text[2] = letters[i];
		assert_int_equal(
		    decode(dst, text, 4, error), i % 4 == 0 ? 2 : -EBADMSG);
		text[1] = letters[i];
		text[2] = '=';
		assert_int_equal(
		    decode(dst, text, 4, error), i % 16 == 0 ? 1 : -EBADMSG);
	}
}

static void
check_mib(size_t n, uint32_t seed)
{
	size_t len = base64_encoded_len(n), max = base64_decoded_max(len);
	_cleanup_free_ uint8_t *bytes = xmalloc(n);
	_cleanup_free_ char *expect = xmalloc(len);
	uint8_t *text = guarded(len), *back = guarded(max);
	char error[BASE64_ERROR_MAX] = "";

	fill_random(bytes, n, seed);
	assert_int_equal(naive_encode(expect, bytes, n), len);
	assert_int_equal(base64_encode((char *)text, bytes, n), len);
	assert_memory_equal(text, expect, len);
	assert_int_equal(base64_decode(back, expect, len, error), n);
	assert_memory_equal(back, bytes, n);
	assert_true(guards_hold(text, len) && guards_hold(back, max));
	text[len - 7] = '*';
	assert_int_equal(
	    base64_decode(back, (char *)text, len, error), -EBADMSG);
	snprintf(expect, len, "Invalid symbol 42, offset %zu.", len - 7);
	assert_string_equal(error, expect);
	free_guarded(text);
	free_guarded(back);
}

static void
test_mib(void **state)
{
	for (uint32_t extra = 0; extra < 3; extra++)
		check_mib(MIB + extra, 0x9e3779b9u + extra);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_every_alignment),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_every_symbol_everywhere),
		cmocka_unit_test(test_canonical_bits),
		cmocka_unit_test(test_mib),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
