/* SPDX-License-Identifier: ISC */
/*
 * Patterns of denied paths (doc/sandbox.md section A6).
 *
 * `*` and `?` do not match a slash. `**` as a whole component matches any
 * number of components. `[a-z]` and `[!a]` are classes; a `[` that is not
 * closed is an ordinary letter. `{a,b}` lists alternatives. A backslash quotes
 * the next byte. A leading dot is not special. The code is pure and reads no
 * disk.
 */
#ifndef PATH_GLOB_H
#define PATH_GLOB_H

#include "util.h"

/*
 * Limits: bytes of a pattern, its wild components, the results of its braces.
 */
#define GLOB_TEXT_MAX	      4096
#define GLOB_PARTS_MAX	      62
#define GLOB_ALTERNATIVES_MAX 256

/*
 * One pattern without braces: fixed components, then wild ones. While a path is
 * matched, a set of states tells which parts may come next. Bit i stands for
 * part i, and bit `nparts` means that the whole pattern matched.
 */
struct glob {
	char *base; /* owned: the fixed components, "/a/b" or "a/b" or "" */
	char *text; /* owned: the slices in `parts` point into it */
	struct slice parts[GLOB_PARTS_MAX];
	size_t nparts;
	uint64_t deep; /* a bit for each part that is `**` */
};

struct glob_list {
	struct glob *globs; /* owned */
	size_t count;
};

/*
 * Makes one glob of each alternative of a pattern. Returns 0, or -EINVAL with
 * *reason set to a static text. The caller calls glob_list_clear() in both
 * cases.
 */
int glob_parse(
    struct glob_list *out, struct slice pattern, const char **reason);
void glob_list_clear(struct glob_list *list);

/* Return the set of states before the first name, and the set after one more
 * name. */
uint64_t glob_start(const struct glob *g);
uint64_t glob_step(const struct glob *g, uint64_t states, const char *name);

/*
 * Tells whether the names so far match the whole pattern, and whether a name
 * further below may match.
 */
bool glob_matched(const struct glob *g, uint64_t states);
bool glob_goes_on(const struct glob *g, uint64_t states);

#endif
