/* SPDX-License-Identifier: ISC */
/*
 * Patterns of denied paths (doc/sandbox.md section A6): `*` and `?` stop at a
 * slash, `**` as a whole component crosses, `[a-z]` and `[!a]` are classes,
 * an unclosed `[` is a letter, `{a,b}` are alternatives, a backslash quotes.
 * Hidden names are names like any other. Pure: looks at no disk.
 */
#ifndef PATH_GLOB_H
#define PATH_GLOB_H

#include "util.h"

/* Bytes of a pattern, its wild components, and what its braces may say. */
#define GLOB_TEXT_MAX	      4096
#define GLOB_PARTS_MAX	      62
#define GLOB_ALTERNATIVES_MAX 256

/*
 * One pattern without braces: fixed components, then wild ones. While a path
 * is matched, a set of states says which parts may come next.
 */
struct glob {
	char *base; /* owned: the fixed components, "/a/b" or "a/b" or "" */
	char *text; /* owned: what parts point into */
	struct slice parts[GLOB_PARTS_MAX];
	size_t nparts;
	uint64_t deep; /* which parts are `**` */
};

struct glob_list {
	struct glob *globs; /* owned */
	size_t count;
};

/* Every alternative of a pattern. 0, or -EINVAL with a reason. End with
 * glob_list_clear() in any case. */
int glob_parse(
    struct glob_list *out, struct slice pattern, const char **reason);
void glob_list_clear(struct glob_list *list);

/* The states in front of the first name, and behind the next one. */
uint64_t glob_start(const struct glob *g);
uint64_t glob_step(const struct glob *g, uint64_t states, const char *name);

/* Did the names so far match as a whole? May a name below match? */
bool glob_matched(const struct glob *g, uint64_t states);
bool glob_goes_on(const struct glob *g, uint64_t states);

/* A path below the base, "a/b". */
bool glob_match(const struct glob *g, const char *path);

#endif
