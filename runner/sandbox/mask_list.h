/*
 * The masks a session ever made, on record outside of it: who kills a runner
 * takes its last chance to remove them, so the monitor keeps the list and
 * starts the sweep (SANDBOX.md C3, step 4). A file in memory, of paths that
 * end with NUL.
 */
#ifndef MASK_LIST_H
#define MASK_LIST_H

#include <stddef.h>

#define MASK_LIST_MAX_BYTES (1u << 20)

struct mask_list {
	int fd; /* -1: none yet */
	size_t bytes;
};

void mask_list_init(struct mask_list *l);

/* 1: the list is new and l->fd is to be handed to the monitor; 0; or -errno,
 * -ENOSPC when it is full. */
int mask_list_add(struct mask_list *l, const char *path);

/* execd-runner --sweep: takes away what is on the list and nobody uses. */
int mask_list_sweep(int fd);

#endif
