/* SPDX-License-Identifier: ISC */
/*
 * Checks UTF-8 in pieces. Text messages are checked as they arrive, so invalid
 * text ends the connection at its first wrong byte.
 *
 * A state says which bytes may come next, and each of them leads to one other
 * state. The narrower ranges after E0, ED, F0 and F4 exclude overlong forms,
 * surrogates and code points beyond U+10FFFF.
 */
#include "utf8.h"

#include "buf.h"

enum utf8_state {
	UTF8_COMPLETE = 0,
	UTF8_REFUSED = 1,
	UTF8_TAIL_1, /* one more byte of 80..BF */
	UTF8_TAIL_2,
	UTF8_TAIL_3,
	UTF8_AFTER_E0,
	UTF8_AFTER_ED,
	UTF8_AFTER_F0,
	UTF8_AFTER_F4,
};

static const struct {
	uint8_t from;
	uint8_t to;
	uint8_t next;
} utf8_expected[] = {
	[UTF8_TAIL_1] = { 0x80, 0xbf, UTF8_COMPLETE },
	[UTF8_TAIL_2] = { 0x80, 0xbf, UTF8_TAIL_1 },
	[UTF8_TAIL_3] = { 0x80, 0xbf, UTF8_TAIL_2 },
	[UTF8_AFTER_E0] = { 0xa0, 0xbf, UTF8_TAIL_1 },
	[UTF8_AFTER_ED] = { 0x80, 0x9f, UTF8_TAIL_1 },
	[UTF8_AFTER_F0] = { 0x90, 0xbf, UTF8_TAIL_2 },
	[UTF8_AFTER_F4] = { 0x80, 0x8f, UTF8_TAIL_2 },
};

static uint32_t
utf8_lead(uint8_t c)
{
	if (c < 0x80)
		return UTF8_COMPLETE;
	if (c < 0xc2 || c > 0xf4)
		return UTF8_REFUSED;
	if (c < 0xe0)
		return UTF8_TAIL_1;
	if (c < 0xf0)
		return c == 0xe0   ? UTF8_AFTER_E0
		       : c == 0xed ? UTF8_AFTER_ED
				   : UTF8_TAIL_2;
	return c == 0xf0   ? UTF8_AFTER_F0
	       : c == 0xf4 ? UTF8_AFTER_F4
			   : UTF8_TAIL_3;
}

/* Returns the length of the run of ASCII bytes at p. */
static size_t
ascii_run(const uint8_t *p, size_t n)
{
	size_t i = 0;
	uint64_t w[4];

	for (; n - i >= sizeof(w); i += sizeof(w)) {
		memcpy(w, p + i, sizeof(w));
		if ((w[0] | w[1] | w[2] | w[3]) & 0x8080808080808080)
			break;
	}
	while (i < n && p[i] < 0x80)
		i++;
	return i;
}

static uint32_t
utf8_tail(uint32_t state, uint8_t c)
{
	if (c < utf8_expected[state].from || c > utf8_expected[state].to)
		return UTF8_REFUSED;
	return utf8_expected[state].next;
}

uint32_t
utf8_check(uint32_t state, const uint8_t *p, size_t n)
{
	size_t i = 0;

	while (i < n && state != UTF8_REFUSED) {
		if (state != UTF8_COMPLETE)
			state = utf8_tail(state, p[i++]);
		else if (p[i] >= 0x80)
			state = utf8_lead(p[i++]);
		else
			i += ascii_run(p + i, n - i);
	}
	return state;
}

size_t
utf8_find_invalid(const void *p, size_t n)
{
	const uint8_t *s = p;
	uint32_t state = utf8_check(0, s, n);
	size_t i;

	if (state == UTF8_COMPLETE)
		return n;
	if (state != UTF8_REFUSED)
		return n - 1;
	state = UTF8_COMPLETE;
	for (i = 0; i < n && state != UTF8_REFUSED; i++)
		state = utf8_check(state, s + i, 1);
	return i - 1;
}

void
utf8_put(struct buf *b, uint32_t c)
{
	char s[4];
	size_t n = 0;

	if (c < 0x80) {
		s[n++] = (char)c;
	} else if (c < 0x800) {
		s[n++] = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		s[n++] = (char)(0xe0 | c >> 12);
		s[n++] = (char)(0x80 | (c >> 6 & 0x3f));
	} else {
		s[n++] = (char)(0xf0 | c >> 18);
		s[n++] = (char)(0x80 | (c >> 12 & 0x3f));
		s[n++] = (char)(0x80 | (c >> 6 & 0x3f));
	}
	if (c >= 0x80)
		s[n++] = (char)(0x80 | (c & 0x3f));
	buf_put(b, s, n);
}

size_t
utf8_next(const uint8_t *p, size_t n, uint32_t *code)
{
	size_t len = *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;

	*code = *p;
	if (len == 1)
		return 1;
	if (len > n || utf8_check(0, p, len) != 0)
		return 0;
	*code = *p & (0x7fu >> len);
	for (size_t i = 1; i < len; i++)
		*code = *code << 6 | (p[i] & 0x3f);
	return len;
}

bool
utf8_controls(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c ||
	       c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

void
utf8_escape(struct buf *b, const char *p, size_t n)
{
	const uint8_t *at = (const uint8_t *)p;
	uint32_t code;

	for (size_t len; n > 0; at += len, n -= len) {
		len = utf8_next(at, n, &code);
		if (len > 0 && !utf8_controls(code)) {
			buf_put(b, at, len);
			continue;
		}
		len = len > 0 ? len : 1;
		for (size_t i = 0; i < len; i++)
			buf_printf(b, "\\x%02x", at[i]);
	}
}
