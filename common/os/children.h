/* SPDX-License-Identifier: ISC */
/*
 * The calling process's own children, as the kernel lists them: also orphans
 * that were handed to it (PR_SET_CHILD_SUBREAPER, or pid 1).
 */
#ifndef CHILDREN_H
#define CHILDREN_H

#include <sys/types.h>

/* Calls visit for each child, zombies included. 0 or -errno. The list may be
 * stale by the time it is read: repeat until it stays empty. */
int children_each(void (*visit)(pid_t pid, void *arg), void *arg);

#endif
