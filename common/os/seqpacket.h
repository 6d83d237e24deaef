/* SPDX-License-Identifier: ISC */
/*
 * One end of an AF_UNIX SOCK_SEQPACKET pair: a message is a packet, and
 * descriptors travel with their message (unix(7), SCM_RIGHTS).
 */
#ifndef SEQPACKET_H
#define SEQPACKET_H

#include <stddef.h>
#include <sys/types.h>

#define SEQPACKET_FDS_MAX 16

/* A connected pair, both ends CLOEXEC and non-blocking. 0 or -errno. */
int seqpacket_pair(int fds[2]);

/* Sends one packet; the descriptors stay the caller's. 0 or -errno (-EAGAIN:
 * the peer does not read). */
int seqpacket_send(
    int fd, const void *p, size_t n, const int *fds, size_t nfds);

/*
 * Receives one packet, never waiting. Returns its length, 0 at end of file, or
 * -errno: -EAGAIN nothing there, -EMSGSIZE a packet or descriptor list was cut
 * (its descriptors are closed). Received descriptors are CLOEXEC and the
 * caller's; *nfds says how many of fds[SEQPACKET_FDS_MAX] there are.
 */
ssize_t seqpacket_recv(
    int fd, void *p, size_t cap, int fds[SEQPACKET_FDS_MAX], size_t *nfds);

/* How descriptors of a packet that was cut are closed, where closing what an
 * untrusted program sent must not block. */
void seqpacket_set_drop(void (*drop)(const int *fds, size_t n));

#endif
