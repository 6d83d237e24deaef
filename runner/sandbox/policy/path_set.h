/* SPDX-License-Identifier: ISC */
/*
 * A set of places on the disk, each known by device and inode. The functions
 * tell whether a path lies in one of them. A path is looked up once, when it is
 * added: a later rename or a new link does not change the set.
 */
#pragma once

#include "resolve.h"

struct paths {
	struct fs_node *items; /* owned */
	size_t count, cap;
};

/*
 * Adds what the path leads to now. Links are followed. Returns false and adds
 * nothing if the path leads nowhere.
 */
bool path_set_add(struct paths *p, const char *path);

void path_set_copy(struct paths *p, const struct paths *from);

/*
 * Adds what glob(7) patterns match now. Links are not followed in the names
 * that a pattern matched and in what comes after them: whoever may create a
 * link in a directory must not choose what a pattern means.
 */
void path_set_add_patterns(struct paths *p, const char *const *patterns);

/*
 * Tells whether the path is one of the places or lies in one. The walk starts
 * at the root and returns false at a link. With `seen`, the path must also lead
 * to exactly this device and inode.
 */
bool path_set_hold(
    const struct paths *p, const char *path, const struct fs_node *seen);

/*
 * The same for the place that a path leads to; links are followed. A missing
 * path is judged by its nearest existing directory. p == NULL permits every
 * place. If the path exists and is permitted, its place is added to *found.
 */
bool path_set_hold_target(
    const struct paths *p, const char *path, struct paths *found);

void path_set_clear(struct paths *p);
