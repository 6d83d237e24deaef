/*
 * The masks that sessions of one user made, on record outside of them: who
 * kills a runner, or the whole machine, takes its chance to remove them. The
 * monitor keeps the file (mask_files.h of the monitor) and starts the sweep; a
 * path is on the disk before its mask is made.
 *
 * The list has a key that only execd knows. A mask carries a mark made of the
 * key, its path, its device and its inode, so that a mask which is made anew
 * for each command needs no new line, and what looks like one is none.
 */
#ifndef PLACEHOLDER_LIST_H
#define PLACEHOLDER_LIST_H

#include <stddef.h>

#include "placeholder.h"
#include "placeholder_format.h"

struct mask_list {
	int fd; /* the session's, not closed; -1: there is none */
	struct siphash_key key;
};

void mask_list_init(struct mask_list *l, int fd);

/* Adds the paths that are not on it. 0; or -errno: -ENOSPC when it is full,
 * -EBADMSG when it is no list. On success l->key is known. */
int mask_list_add(struct mask_list *l, const struct mask *masks, size_t n);

/* execd-runner --sweep: takes away what is on the list and nobody uses. 0 or
 * -errno. */
int mask_list_sweep(int fd);

#endif
