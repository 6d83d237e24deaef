/* SPDX-License-Identifier: ISC */
/*
 * file: URIs <-> path bytes (doc/protocol.md section 9, WHATWG URL rules).
 * Pure: never looks at the disk.
 */
#ifndef PATH_URI_H
#define PATH_URI_H

#include "buf.h"
#include "json.h"

struct path_uri {
	struct slice uri; /* normalised as the peer shows it in errors */
	const char *path; /* absolute, NUL-terminated, dot segments and
			   * doubled or trailing slashes gone; in the arena.
			   * NULL when foreign */
	bool foreign;	  /* another host or a drive letter: a URI, but no
			   * path of this machine */
};

/* 0, or -EBADMSG with the message of section 9 in error[]. Memory comes from
 * doc's arena. */
int path_uri_parse(struct path_uri *out, struct json_doc *doc, struct slice uri,
    char *error, size_t error_cap);

/* Appends "file:///..." with section 9's escapes (no quotes, nothing that
 * JSON would escape again). */
void path_uri_write(struct buf *b, const char *path);

/* The same as a JSON string value. */
void json_path(struct json_writer *w, const char *path);

#endif
