/* SPDX-License-Identifier: ISC */
#include "json_scan.h"

#include "utf8.h"

/* Cutting shorter strings gains nothing. */
#ifndef LONG_STRING_BYTES
#define LONG_STRING_BYTES 4096
#endif

static int
hex4(const char *s)
{
	int v = 0;

	for (int i = 0; i < 4; i++) {
		char c = s[i];

		if (c >= '0' && c <= '9')
			v = v * 16 + c - '0';
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			v = v * 16 + (c | 0x20) - 'a' + 10;
		else
			return -1;
	}
	return v;
}

/* yajl turns half a surrogate pair into a question mark; here it is an error.
 * Escapes occur only in strings, so they can be found without a parser. Returns
 * the offset of the bad escape, or the length. */
static size_t
find_lone_surrogate(const char *text, size_t len)
{
	const char *at = text, *end = text + len;

	while ((at = memchr(at, '\\', (size_t)(end - at))) != NULL) {
		int high = end - at >= 6 && at[1] == 'u' ? hex4(at + 2) : -1;

		if (high >= 0xdc00 && high <= 0xdfff)
			return (size_t)(at - text);
		if (high >= 0xd800 && high <= 0xdbff) {
			int low =
			    end - at >= 12 && at[6] == '\\' && at[7] == 'u'
				? hex4(at + 8)
				: -1;

			if (low < 0xdc00 || low > 0xdfff)
				return (size_t)(at - text);
			at += 12;
		} else {
			at += end - at >= 2 ? 2 : 1;
		}
	}
	return len;
}

static size_t
find_in_pieces(const struct json_cuts *cuts, const char *text, size_t len,
    size_t (*find)(const char *text, size_t len))
{
	size_t at = 0;

	for (size_t i = 0; i <= cuts->count; i++) {
		size_t end = i < cuts->count ? cuts->cut[i].from : len;
		size_t found = find(text + at, end - at);

		if (found < end - at)
			return at + found;
		if (i < cuts->count)
			at = cuts->cut[i].to;
	}
	return len;
}

static size_t
find_bad_utf8(const char *text, size_t len)
{
	return utf8_find_invalid(text, len);
}

/* yajl takes a form feed and a vertical tab for blanks. Inside strings it has
 * refused them already. */
static size_t
find_bad_blank(const char *text, size_t len)
{
	const char *feed = memchr(text, '\f', len);
	const char *tab;

	if (feed != NULL)
		len = (size_t)(feed - text);
	tab = memchr(text, '\v', len);
	return tab != NULL ? (size_t)(tab - text) : len;
}

size_t
json_scan_utf8(const struct json_cuts *cuts, const char *text, size_t len)
{
	return find_in_pieces(cuts, text, len, find_bad_utf8);
}

size_t
json_scan_surrogates(const struct json_cuts *cuts, const char *text, size_t len)
{
	return find_in_pieces(cuts, text, len, find_lone_surrogate);
}

size_t
json_scan_blanks(const struct json_cuts *cuts, const char *text, size_t len)
{
	return find_in_pieces(cuts, text, len, find_bad_blank);
}

/* 16 bytes, which every 64-bit processor compares in one step. */
typedef int8_t wide __attribute__((vector_size(16)));

static bool
is_plain(char c)
{
	return (signed char)c >= 0x20 && c != '"' && c != '\\';
}

/* Returns the length of the plain run at s. */
static size_t
plain_run(const char *s, size_t n)
{
	size_t i = 0;

	for (; n - i >= sizeof(wide); i += sizeof(wide)) {
		uint64_t odd[2];
		wide w;

		memcpy(&w, s + i, sizeof(w));
		/* bytes from 0x80 up are negative */
		w = (w < 0x20) | (w == '"') | (w == '\\');
		memcpy(odd, &w, sizeof(odd));
		if (odd[0] | odd[1])
			break;
	}
	while (i < n && is_plain(s[i]))
		i++;
	return i;
}

/* Returns the offset of the quote that ends the string, or len. `at` is a
 * position inside the string. */
static size_t
string_end(const char *text, size_t len, size_t at)
{
	while (at < len) {
		at += plain_run(text + at, len - at);
		if (at == len || text[at] == '"')
			return at;
		at += text[at] == '\\' ? 2 : 1;
	}
	return len;
}

/* Finds the next string at or after `at`. In a correct text a quote is either
 * around a string or escaped in one; after an error the result does not matter.
 * Returns false if no complete string follows. */
static bool
next_string(
    const char *text, size_t len, size_t at, struct json_cut *string, bool *cut)
{
	const char *quote = memchr(text + at, '"', len - at);
	size_t run;

	if (quote == NULL)
		return false;
	string->from = (size_t)(quote - text) + 1;
	run = plain_run(text + string->from, len - string->from);
	string->to = string_end(text, len, string->from + run);
	*cut = run > LONG_STRING_BYTES && string->to == string->from + run;
	return string->to < len;
}

void
json_scan_plan(struct json_cuts *cuts, const char *text, size_t len)
{
	struct json_cut string;
	size_t at = 0;
	bool cut;

	cuts->count = 0;
	while (len - at > LONG_STRING_BYTES && cuts->count < JSON_CUTS_MAX &&
	       next_string(text, len, at, &string, &cut)) {
		if (cut)
			cuts->cut[cuts->count++] = string;
		at = string.to + 1;
	}
}

bool
json_scan_exceeds(const char *text, size_t len, size_t most)
{
	size_t at = 0, spared = 0, count = 0;
	struct json_cut string;
	bool cut;

	while (at - spared <= most && count < JSON_CUTS_MAX &&
	       next_string(text, len, at, &string, &cut)) {
		at = string.to + 1;
		spared += cut ? string.to - string.from : 0;
		count += cut;
	}
	return len - spared > most;
}
