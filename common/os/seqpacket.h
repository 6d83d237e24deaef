/* SPDX-License-Identifier: ISC */
/*
 * AF_UNIX SOCK_SEQPACKET sockets: one message is one packet, and descriptors
 * travel with their message (unix(7), SCM_RIGHTS).
 */
#pragma once

#include "base.h"

#define SEQPACKET_FDS_MAX 16

/* Makes a connected pair. Both ends are close-on-exec and non-blocking, and the
 * caller's. Returns 0 or -errno. */
int seqpacket_pair(int fds[2]);

/* Sends one packet. The descriptors stay the caller's. Returns 0 or -errno. On
 * a non-blocking socket -EAGAIN means that the peer does not read. */
int seqpacket_send(
    int fd, const void *p, size_t n, const int *fds, size_t nfds);

/*
 * Receives one packet without waiting. Returns its length, 0 at end of file, or
 * -errno. -EAGAIN means that there is no packet. -EMSGSIZE means that the
 * packet or its list of descriptors was truncated; its descriptors are closed.
 * Received descriptors are close-on-exec and the caller's; *nfds is their
 * number.
 */
ssize_t seqpacket_recv(
    int fd, void *p, size_t cap, int fds[SEQPACKET_FDS_MAX], size_t *nfds);

/* Sets the function that closes the descriptors of a truncated packet. Needed
 * where closing a descriptor of an untrusted sender must not block. */
void seqpacket_set_drop(void (*drop)(const int *fds, size_t n));
