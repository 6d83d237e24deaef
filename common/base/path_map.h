/* SPDX-License-Identifier: ISC */
/*
 * Maps paths of a client that has drive letters to paths of this machine and
 * back: `C:\work = /srv/work`. Pure text; nothing is looked up, and nothing
 * here decides what a client may reach.
 *
 * A path that comes in has at most one meaning, and what goes out means the
 * same when it comes back: path_map_out() writes only what path_map_in() turns
 * into the same path again.
 */
#pragma once

#include "buf.h"
#include "util.h"

#define PATH_MAP_ROOTS_MAX 32
/* The size of all roots as path_map_write() writes them, with a NUL. */
#define PATH_MAP_TEXT_MAX 2048
#define PATH_MAP_WHY_MAX  512

struct path_map_root {
	char *client; /* owned: "C:\work", or "Z:" for a whole drive */
	char *server; /* owned: "/srv/work", or "/" */
	size_t names; /* of `client` after the drive */
};

struct path_map {
	struct path_map_root roots[PATH_MAP_ROOTS_MAX];
	size_t count;
};

/* Adds one root: CLIENT=SERVER, with blanks around each part permitted. Returns
 * 0, or -EINVAL with why[PATH_MAP_WHY_MAX]: one of the parts is no such path,
 * or a root has one of them already, which would make the map ambiguous. */
int path_map_add(struct path_map *m, const char *text, char *why);

/* Adds the roots of a text that has one on each line. Returns 0, or -EINVAL
 * with why; *m then has those before. */
int path_map_read(struct path_map *m, const char *text, char *why);

/* Appends all roots, one on each line, as path_map_read() takes them. */
void path_map_write(const struct path_map *m, struct buf *b);

/* Frees the roots; the map can be used again. */
void path_map_clear(struct path_map *m);

/* Returns the bytes, with the NUL, that path_map_in() or path_map_pattern()
 * needs at most for a text of that length. */
size_t path_map_room(const struct path_map *m, size_t len);

/*
 * Writes the path of this machine to out[path_map_room()]. The longest root
 * wins. Returns 0; -ENOENT if the path is well formed and lies under no root;
 * -EXDEV if moreover a root lies below it; or -EINVAL if it may not be mapped.
 * Every error comes with why[PATH_MAP_WHY_MAX]. *elsewhere tells whether a root
 * lies below the path that leads to a place outside of the result.
 */
int path_map_in(const struct path_map *m, struct slice text, char *out,
    bool *elsewhere, char *why);

/* Does the same for a pattern (path_glob.c) of a client of this map; a pattern
 * above a root is -EXDEV. Backslashes are separators. A pattern without a drive
 * letter is only rewritten. */
int path_map_pattern(
    const struct path_map *m, struct slice text, char *out, char *why);

/* Appends the client's name of an absolute path without "." and "..", as
 * "C:/work/x". Returns false, and appends nothing, if the path lies under no
 * root or has a name that the client cannot have. */
bool path_map_out(const struct path_map *m, const char *path, struct buf *b);

/* Makes the roots of the text the map of this process, which serves one
 * client's identity; "": none, as at the start. Returns 0, or -EINVAL with why
 * and no map. path_map_used() returns NULL without a map. */
int path_map_use(const char *text, char *why);
const struct path_map *path_map_used(void);
