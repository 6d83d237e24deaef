/* SPDX-License-Identifier: ISC */
/*
 * A set of places on the disk, each known by device and inode, asked whether
 * something lies in one of them. A place is looked up once, when it is added:
 * what is renamed or linked anew after that changes nothing in the set.
 */
#ifndef PATH_SET_H
#define PATH_SET_H

#include "resolve.h"

struct paths {
	struct fs_node *items; /* owned */
	size_t count, cap;
};

/* Where the path leads now, through links too; what leads nowhere is left
 * out. False: that. */
bool path_set_add(struct paths *p, const char *path);

void path_set_copy(struct paths *p, const struct paths *from);

/* What glob(7) patterns match now. Whoever may make a link in a directory must
 * not choose what a pattern means: names that a pattern matched, and what
 * follows them, are no links. */
void path_set_add_patterns(struct paths *p, const char *const *patterns);

/*
 * Whether the path is one of the places or lies in one, gone down from the
 * root without a link on the way. seen: what must be found there, or it is
 * in none of them.
 */
bool path_set_hold(
    const struct paths *p, const char *path, const struct fs_node *seen);

/* The same of where a path leads; what is not there yet is where its directory
 * is. p: NULL for anywhere. What it leads to, if that is there and in one of
 * them, goes into *found. */
bool path_set_hold_target(
    const struct paths *p, const char *path, struct paths *found);

void path_set_clear(struct paths *p);

#endif
