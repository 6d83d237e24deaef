/* SPDX-License-Identifier: ISC */
/*
 * Converts between file: URIs and paths (doc/protocol.md section 9, WHATWG URL
 * rules). Never looks at the disk.
 */
#pragma once

#include "json.h"

struct path_uri {
	struct slice uri; /* normalised, as the peer shows it in errors */
	/* absolute, NUL-terminated, in the arena; without dot segments and
	 * without doubled or trailing slashes. NULL if foreign */
	const char *path;
	/* another host, or a drive letter that no map turns into a path: a
	 * valid URI, but no path of this machine */
	bool foreign;
	/* Only with a map (path_map.h): the path is well formed, and nothing on
	 * this machine has a name at or below it. */
	bool outside;
	/* Only with a map: what the client has below the path is not all below
	 * `path`. */
	bool elsewhere;
	const char *hint; /* for path_uri_hint() */
};

/* Returns 0, or -EBADMSG with a message of section 9 in error[]. Memory comes
 * from the arena of doc. This is where a client's paths are mapped: if this
 * process uses a map, drive letters are looked up in it, and a plain path of
 * Windows is accepted in place of a URI. What the map refuses is an error. */
int path_uri_parse(struct path_uri *out, struct json_doc *doc, struct slice uri,
    char *error, size_t error_cap);

/* Tells whether this process uses a map and the text is a plain path of
 * Windows, which path_uri_parse() takes. */
bool path_uri_is_windows(struct slice text);

/* Returns what to add to the error about a foreign path: "", or which key of
 * the configuration would change it. */
const char *path_uri_hint(const struct path_uri *p);

/* Appends "file:///..." with the escapes of section 9. The result contains no
 * quotes and nothing that JSON would have to escape. This is where paths are
 * mapped back: a path that has a name in the map of this process is written by
 * that name. */
void path_uri_write(struct buf *b, const char *path);

/* Returns the bytes that path_uri_write() appends at most. */
size_t path_uri_room(const char *path);

/* Writes the same as a JSON string. */
void json_path(struct json_writer *w, const char *path);
void json_key_path(struct json_writer *w, const char *key, const char *path);
