/* SPDX-License-Identifier: ISC */
/*
 * The children of the calling process, and of others.
 */
#pragma once

#include <sys/types.h>

/* Calls visit() for each child that the kernel lists, including zombies and
 * orphans that the kernel gave to this process (PR_SET_CHILD_SUBREAPER, or pid
 * 1). Returns 0 or -errno. The
 * list may be out of date when it is read, so repeat until no child is left. */
int children_each(void (*visit)(pid_t pid, void *arg), void *arg);

/* The same for all threads of a process; pid 0 is the calling one. Returns 0,
 * or -errno: -ENOENT or -ESRCH if it has ended, or a thread of it meanwhile,
 * and without CONFIG_PROC_CHILDREN. */
int children_of(pid_t pid, void (*visit)(pid_t pid, void *arg), void *arg);

/* Calls visit() for each pid in a file of the kernel's. Returns 0 or -errno. */
int children_read(
    const char *path, void (*visit)(pid_t pid, void *arg), void *arg);

/* Returns the parent of a process, or -1 if it cannot be read. */
pid_t children_parent_of(pid_t pid);

/* Called in a child before it executes a program. Unblocks all signals;
 * programs of execd ignore none. Safe after vfork(2). */
void children_reset_signals(void);
