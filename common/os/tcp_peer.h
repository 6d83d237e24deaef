/* SPDX-License-Identifier: ISC */
/*
 * Who made the socket at the other end of a TCP connection of this host
 * (sock_diag(7)). execd-broker asks it for clients of a listener with
 * `auth = peer-user`. The connection's own descriptor is all that it believes.
 */
#pragma once

#include <sys/types.h>

/* Opens a socket for the questions below. The caller owns it. Returns -errno
 * if there is none, or where the kernel does not know the listening socket: it
 * is in another network namespace, or the kernel has no tcp_diag. */
int tcp_peer_open(int listening);

/*
 * Finds the user who made the other end of fd, a connected TCP socket that this
 * program did not make. Never waits. Returns 0, or
 *	-ENOTCONN if one end is not established any more. Who has closed his
 *		socket has no user there: the kernel would answer 0, root.
 *	-ENOENT if an end is in another network namespace, or is gone
 *	-EPERM if root made it, or a user without a number in this user
 *namespace another -errno if the kernel does not answer
 */
int tcp_peer_uid(int diag, int fd, uid_t *uid);
