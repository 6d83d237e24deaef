/* SPDX-License-Identifier: ISC */
/*
 * Scans a text before json.c gives it to yajl: checks that yajl does not make,
 * and long strings that yajl need not see.
 */
#pragma once

#include "base.h"

#define JSON_CUTS_MAX 8

/*
 * yajl looks at every byte, which is slow for long strings. A long plain string
 * (ASCII, no escapes, no control characters) has no need for that: it is cut
 * out, and yajl sees only its two quotes.
 */
struct json_cuts {
	size_t count;
	struct json_cut {
		/* offsets of the contents, without the quotes */
		size_t from, to;
	} cut[JSON_CUTS_MAX];
};

/* Finds the first JSON_CUTS_MAX long plain strings of the text. The cuts are
 * correct up to the first error in the text; after that they do not matter. */
void json_scan_plan(struct json_cuts *cuts, const char *text, size_t len);

/* Returns true if yajl would have to look at more than `most` bytes. Takes time
 * only for those bytes and for the long strings, whatever the rest of the text
 * is. */
bool json_scan_exceeds(const char *text, size_t len, size_t most);

/* Each returns the offset of a fault outside the cuts, or len. The faults are
 * bytes that are not UTF-8, half a surrogate pair in escapes, and form feeds or
 * vertical tabs, which yajl takes for blanks outside strings. */
size_t json_scan_utf8(
    const struct json_cuts *cuts, const char *text, size_t len);
size_t json_scan_surrogates(
    const struct json_cuts *cuts, const char *text, size_t len);
size_t json_scan_blanks(
    const struct json_cuts *cuts, const char *text, size_t len);
