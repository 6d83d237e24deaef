/* SPDX-License-Identifier: ISC */
/*
 * The terminal of a sandboxed command.
 */
#ifndef INSIDE_TERMINAL_H
#define INSIDE_TERMINAL_H

/*
 * Mounts a new /dev/pts in the mount namespace of the calling command, opens a
 * terminal there and puts it into stdio[]. Its name is good in there, and no
 * other command can open it. The size is that of the terminal in stdio[0]. The
 * master is sent through the socket `to` with one byte. Only system calls. 0 or
 * -errno.
 */
int inside_terminal(int stdio[3], int to);

/* The other end: the master, which is the caller's, or -1 when none was sent.
 * Does not wait. */
int inside_terminal_take(int from);

#endif
