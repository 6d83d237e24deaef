/* SPDX-License-Identifier: ISC */
/*
 * The view: what the file system looks like to the commands of one policy
 * (doc/sandbox.md C3). Built once by the sandbox, which has capabilities in its
 * own user namespace and nowhere else; every command has a copy, in which it
 * gets the /proc of its own pid namespace.
 */
#ifndef VIEW_H
#define VIEW_H

#include <stdbool.h>

#include "resolve.h"

#define VIEW_STEP_MAX 240

/*
 * Replaces the root of the calling process, which is alone in its mount
 * namespace, by what the plan says. 0, or -errno and what failed in
 * step[VIEW_STEP_MAX]; then the mount namespace is of no use any more. -ESTALE:
 * a path is not what the resolver saw.
 */
int view_build(const struct plan *plan, uint64_t shm_bytes, char *step);

/* In the finished view: what the plan's placeholders cover, unless it is
 * covered already. 0 or -errno, with step as above. */
int view_cover(const struct plan *placeholders, char *step);

/* Whether what was mounted still is: who removes a directory outside takes
 * away what is mounted on it here. 0, or -ESTALE with step as above. */
int view_check(const struct plan *plan, char *step);

/* Without a view, on the host, from "/": what a plan's mount names, O_PATH, if
 * it is what the resolver saw. -ESTALE: it is not; or -errno. */
int view_open_host(const struct plan_mount *m);

/* Likewise, of the whole plan: 0, or -ESTALE with step as above. */
int view_check_host(const struct plan *plan, char *step);

/* Whether commands get a /proc. */
bool view_has_proc(const struct plan *plan);

/* Whether the view has a /dev. */
bool view_has_dev(const struct plan *plan);

/* In the mount namespace of one command: a /dev/pts without anybody else's
 * terminals. Only system calls. 0 or -errno. */
int view_mount_terminals(void);

/* In the mount and pid namespace of one command: its /proc, without what tells
 * of the host or changes it. Only system calls. 0 or -errno. */
int view_mount_proc(void);

#endif
