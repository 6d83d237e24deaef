/* SPDX-License-Identifier: ISC */
/*
 * What json.c looks at before yajl does: the checks yajl leaves out, and the
 * long strings it need not see.
 */
#ifndef JSON_SCAN_H
#define JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#define JSON_CUTS_MAX 8

/*
 * yajl looks at every byte. A long string that is plain (ASCII, no escape, no
 * control character) stands for itself, so yajl is given its quotes alone.
 */
struct json_cuts {
	size_t count;
	struct json_cut {
		size_t from, to; /* offsets of what is between the quotes */
	} cut[JSON_CUTS_MAX];
};

/* Finds the long plain strings of the text, the first JSON_CUTS_MAX of them.
 * Right up to the first error in the text; what is behind does not count. */
void json_scan_plan(struct json_cuts *cuts, const char *text, size_t len);

/* Is there more than `most` bytes of it that yajl has to look at? Costs what
 * these bytes and the long strings cost, whatever else the text is. */
bool json_scan_exceeds(const char *text, size_t len, size_t most);

/* Offset of the first fault between the cuts, or len: bytes that are not
 * UTF-8; half a surrogate pair in escapes; form feeds and vertical tabs, which
 * yajl takes for blanks (in strings it refuses them). */
size_t json_scan_utf8(
    const struct json_cuts *cuts, const char *text, size_t len);
size_t json_scan_surrogates(
    const struct json_cuts *cuts, const char *text, size_t len);
size_t json_scan_blanks(
    const struct json_cuts *cuts, const char *text, size_t len);

#endif
