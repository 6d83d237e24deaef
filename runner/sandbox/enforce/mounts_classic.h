/* SPDX-License-Identifier: ISC */
/*
 * mounts.h without the system calls of Linux 5.2 and 5.12.
 */
#ifndef MOUNTS_CLASSIC_H
#define MOUNTS_CLASSIC_H

/* As mounts_bind() and mounts_seal(), for a kernel that has no open_tree(2),
 * move_mount(2) or mount_setattr(2). Needs a /proc: the working directory, or
 * at its place. */
int mounts_classic_bind(int source, int target, unsigned flags);
int mounts_classic_seal(int fd, unsigned flags);

#endif
