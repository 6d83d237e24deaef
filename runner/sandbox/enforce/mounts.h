/* SPDX-License-Identifier: ISC */
/*
 * The few things a sandbox's view does with mounts. Descriptors, not names:
 * what was compared is what is mounted.
 *
 * Sources: open_tree(2), mount_setattr(2), move_mount(2), openat2(2).
 */
#ifndef MOUNTS_H
#define MOUNTS_H

#include <stdint.h>

#define MOUNTS_NO_SUID	(1u << 0)
#define MOUNTS_NO_DEV	(1u << 1)
#define MOUNTS_READONLY (1u << 2)
#define MOUNTS_NO_EXEC	(1u << 3)

/* O_PATH, close-on-exec, below root (which is "/" for it); no component may
 * be a link, the last one may be one and is not followed. -errno: -ELOOP. */
int mounts_open(int root, const char *path);

/* A copy of the tree at `source`, with all that is mounted below it, onto
 * `target`; `flags` are added to every mount of it, and nothing that happens
 * to the original's mounts shows. 0 or -errno. */
int mounts_bind(int source, int target, unsigned flags);

/* Adds flags to the one mount whose root fd is. 0 or -errno. */
int mounts_seal(int fd, unsigned flags);

/* Nothing that is mounted here shows elsewhere, or the other way. */
int mounts_make_private(void);

#endif
