/* SPDX-License-Identifier: ISC */
/*
 * The placeholders that sessions of one user made, on record outside of them:
 * who kills a runner, or the whole machine, takes its chance to remove them.
 * The broker keeps the file (placeholder_files.h of the broker) and starts the
 * sweep; a path is on the disk before its placeholder is made.
 *
 * The list has a key that only execd knows. A placeholder carries a mark made
 * of the key, its path, its device and its inode, so that a placeholder which
 * is made anew for each command needs no new line, and what looks like one is
 * none.
 */
#ifndef PLACEHOLDER_LIST_H
#define PLACEHOLDER_LIST_H

#include <stddef.h>

#include "placeholder.h"
#include "placeholder_format.h"

struct placeholder_list {
	int fd; /* the session's, not closed; -1: there is none */
	struct siphash_key key;
};

void placeholder_list_init(struct placeholder_list *l, int fd);

/* Adds the paths that are not on it. 0; or -errno: -ENOSPC when it is full,
 * -EBADMSG when it is no list. On success l->key is known. */
int placeholder_list_add(struct placeholder_list *l,
    const struct placeholder *placeholders, size_t n);

/* execd-runner --sweep: takes away what is on the list and nobody uses. 0 or
 * -errno. */
int placeholder_list_sweep(int fd);

#endif
