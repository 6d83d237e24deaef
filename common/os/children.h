/* SPDX-License-Identifier: ISC */
/*
 * The children of the calling process, as the kernel lists them. Orphans that
 * the kernel gave to this process are included (PR_SET_CHILD_SUBREAPER, or pid
 * 1).
 */
#ifndef CHILDREN_H
#define CHILDREN_H

#include <sys/types.h>

/* Calls visit() for each child, including zombies. Returns 0 or -errno. The
 * list may be out of date when it is read, so repeat until no child is left. */
int children_each(void (*visit)(pid_t pid, void *arg), void *arg);

#endif
