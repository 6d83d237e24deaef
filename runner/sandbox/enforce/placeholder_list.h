/* SPDX-License-Identifier: ISC */
/*
 * The list of placeholders that sessions of one user made. It is kept outside
 * of the sessions, because a runner or machine that is killed cannot remove its
 * placeholders. The broker keeps the file (placeholder_files.h of the broker)
 * and starts the cleanup. A path is written to the disk before its placeholder
 * is made.
 *
 * The list has a key that only execd knows. A placeholder carries a mark made
 * of the key, its path, its device and its inode. So a placeholder that is made
 * again for each command needs no new line, and a file that only looks like a
 * placeholder is not removed.
 */
#ifndef PLACEHOLDER_LIST_H
#define PLACEHOLDER_LIST_H

#include <stddef.h>

#include "placeholder.h"
#include "placeholder_format.h"

struct placeholder_list {
	int fd; /* the session's, not owned; -1: there is no list */
	struct siphash_key key;
};

void placeholder_list_init(struct placeholder_list *l, int fd);

/*
 * Adds the paths that are not on the list. Returns 0 and sets l->key, or
 * -errno: -ENOSPC if the list is full, -EBADMSG if it is not a list.
 */
int placeholder_list_add(struct placeholder_list *l,
    const struct placeholder *placeholders, size_t n);

/*
 * For execd-runner --cleanup: removes the placeholders on the list that nobody
 * uses. Returns 0 or -errno.
 */
int placeholder_list_cleanup(int fd);

#endif
