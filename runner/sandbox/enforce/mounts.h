/* SPDX-License-Identifier: ISC */
/*
 * The operations on mounts that a sandbox's view needs. They work on
 * descriptors and not on names, so what was compared is what is mounted.
 *
 * Sources: open_tree(2), mount_setattr(2), move_mount(2), openat2(2).
 */
#pragma once

#include "base.h"

#define MOUNTS_NO_SUID	(1u << 0)
#define MOUNTS_NO_DEV	(1u << 1)
#define MOUNTS_READONLY (1u << 2)
#define MOUNTS_NO_EXEC	(1u << 3)

/*
 * Opens a path below root, which is "/" for this path, with O_PATH and
 * close-on-exec. No component may be a link, except the last, which is not
 * followed. Returns a descriptor that the caller owns, or -errno. A
 * link on the way is -ELOOP.
 */
int mounts_open(int root, const char *path);

/*
 * Mounts a copy of the tree at `source`, with everything mounted below it, on
 * `target`. `flags` are added to every mount of the copy. Later mounts in the
 * original do not appear in the copy. Returns 0 or -errno.
 */
int mounts_bind(int source, int target, unsigned flags);

/* Closes descriptors with one call if they were opened one after the other. */
void mounts_close(const int *fds, size_t n);

/* Adds flags to the single mount whose root is fd. Returns 0 or -errno. */
int mounts_seal(int fd, unsigned flags);

/*
 * Makes all mounts private: mounts made here do not appear elsewhere, nor the
 * other way round. Returns 0 or -errno.
 */
int mounts_make_private(void);
