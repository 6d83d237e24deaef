/* SPDX-License-Identifier: ISC */
/* The functions of mounts.h without the system calls of Linux 5.2 and 5.12. */
#ifndef MOUNTS_CLASSIC_H
#define MOUNTS_CLASSIC_H

/*
 * Like mounts_bind() and mounts_seal(), for a kernel without open_tree(2),
 * move_mount(2) or mount_setattr(2). They need a /proc, either as the working
 * directory or at /proc.
 */
int mounts_classic_bind(int source, int target, unsigned flags);
int mounts_classic_seal(int fd, unsigned flags);

#endif
