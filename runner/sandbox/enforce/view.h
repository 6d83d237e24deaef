/* SPDX-License-Identifier: ISC */
/*
 * The view: the file system as the commands of one policy see it
 * (doc/sandbox.md C3). The sandbox builds it once; it has capabilities only in
 * its own user namespace. Every command gets a copy, with the /proc of its own
 * pid namespace.
 */
#ifndef VIEW_H
#define VIEW_H

#include <stdbool.h>

#include "resolve.h"

#define VIEW_STEP_MAX 240

/*
 * Replaces the root of the calling process, which must be alone in its mount
 * namespace, with what the plan says. Returns 0, or -errno with the failed step
 * in step[VIEW_STEP_MAX]; then the mount namespace is unusable. -ESTALE: a path
 * is not what the resolver saw.
 */
int view_build(const struct plan *plan, uint64_t shm_bytes, char *step);

/*
 * Covers the plan's placeholders in the finished view, unless they are already
 * covered. Returns 0 or -errno, with step as above.
 */
int view_cover(const struct plan *placeholders, char *step);

/*
 * Checks that everything is still mounted: when a directory is removed outside,
 * what is mounted on it here disappears. Returns 0, or -ESTALE with step as
 * above.
 */
int view_check(const struct plan *plan, char *step);

/*
 * Opens what a mount of the plan names on the host, without a view, with
 * O_PATH. Returns a descriptor that the caller owns, -ESTALE if it is not what
 * the resolver saw, or another -errno.
 */
int view_open_host(const struct plan_mount *m);

/*
 * Checks the whole plan in the same way. Returns 0, or -ESTALE with step as
 * above.
 */
int view_check_host(const struct plan *plan, char *step);

/* Tells whether commands get a /proc. */
bool view_has_proc(const struct plan *plan);

/* Tells whether the view has a /dev. */
bool view_has_dev(const struct plan *plan);

/* Tells whether view_mount_resolver() has a file to mount over. For the
 * finished view. */
bool view_has_resolver(void);

/*
 * Mounts a resolv.conf that names this server (in host order) and no other,
 * in the mount namespace of one command. Makes only system calls. Returns 0 or
 * -errno.
 */
int view_mount_resolver(uint32_t server);

/*
 * Mounts a new, empty /dev/pts in the mount namespace of one command. Makes
 * only system calls. Returns 0 or -errno.
 */
int view_mount_terminals(void);

/*
 * Mounts /proc in the mount and pid namespace of one command, and covers what
 * shows or changes the host. Makes only system calls. Returns 0 or -errno.
 */
int view_mount_proc(void);

#endif
