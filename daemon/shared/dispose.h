/* SPDX-License-Identifier: ISC */
/*
 * Closes what an untrusted program sent. A close may wait as long as the sender
 * likes: a socket with SO_LINGER waits for its peer to read, and a file of FUSE
 * waits for a program of the sender. So such a descriptor is not closed here,
 * but by a child that shares this program's table of descriptors. It is gone
 * from the table at once, and only the child waits.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Closes n descriptors. No close can make the caller wait. A descriptor of -1
 * is skipped. */
void dispose(const int *fds, size_t n);

/* Reaps children that were late. dispose() does so, too. */
void dispose_reap(void);

/* Forks another child that may have to wait. It sends no SIGCHLD at its end and
 * is reaped as the others. flags are those of clone(2). Returns its pid, 0 in
 * the child, or -errno: -EAGAIN if 32 of them wait. */
pid_t dispose_fork(int flags);

/* Kills it, and waits 20 ms at most for its end. */
void dispose_end(pid_t pid);
