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

/* Closes n descriptors. No close can make the caller wait. A descriptor of -1
 * is skipped. */
void dispose(const int *fds, size_t n);
