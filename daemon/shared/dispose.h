/* SPDX-License-Identifier: ISC */
/*
 * Closing what an untrusted program sent. A close may wait as long as the
 * sender likes: a socket with SO_LINGER for what its peer does not read, a file
 * of FUSE for a program of the sender's. So nothing of that kind is closed
 * here, but by a child that shares this program's table of descriptors: what it
 * closes is gone from the table at once, and who waits is the child.
 */
#ifndef DISPOSE_H
#define DISPOSE_H

#include <stddef.h>

/* Closes them all, and waits for none; -1 is none. */
void dispose(const int *fds, size_t n);

/* Closes our end of a channel whose other end is untrusted: what nobody has
 * read from it may bring descriptors as well. */
void dispose_channel(int fd);

#endif
