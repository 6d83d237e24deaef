/* SPDX-License-Identifier: ISC */
/*
 * The terminal of a sandboxed command.
 */
#ifndef INSIDE_TERMINAL_H
#define INSIDE_TERMINAL_H

/*
 * Mounts a new /dev/pts in the mount namespace of the calling command, opens a
 * terminal there and puts it into stdio[]. Its name is valid only in there, and
 * no other command can open it. The size is copied from the terminal in
 * stdio[0]. The master is sent through the socket `to` with one byte. Makes
 * only system calls. Returns 0 or -errno.
 */
int inside_terminal(int stdio[3], int to);

/*
 * Receives the master at the other end, without waiting. Returns a descriptor
 * that the caller owns, or -1 if none was sent.
 */
int inside_terminal_take(int from);

#endif
