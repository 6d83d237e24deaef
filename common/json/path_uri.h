/* SPDX-License-Identifier: ISC */
/*
 * Converts between file: URIs and paths (doc/protocol.md section 9, WHATWG URL
 * rules). Never looks at the disk.
 */
#ifndef PATH_URI_H
#define PATH_URI_H

#include "buf.h"
#include "json.h"

struct path_uri {
	struct slice uri; /* normalised, as the peer shows it in errors */
	/* absolute, NUL-terminated, in the arena; without dot segments and
	 * without doubled or trailing slashes. NULL if foreign */
	const char *path;
	/* another host or a drive letter: a valid URI, but no path of this
	 * machine */
	bool foreign;
};

/* Returns 0, or -EBADMSG with a message of section 9 in error[]. Memory comes
 * from the arena of doc. */
int path_uri_parse(struct path_uri *out, struct json_doc *doc, struct slice uri,
    char *error, size_t error_cap);

/* Appends "file:///..." with the escapes of section 9. The result contains no
 * quotes and nothing that JSON would have to escape. */
void path_uri_write(struct buf *b, const char *path);

/* Writes the same as a JSON string. */
void json_path(struct json_writer *w, const char *path);

#endif
