/* SPDX-License-Identifier: ISC */
/*
 * The TCP ports on which execd listens. A command that reached one of them
 * could leave its sandbox there, so whoever connects for a command or a client
 * asks own_ports_has() right before connect(2): the proxy for connect(2)
 * (socket_calls.h), execd-netproxy, execd-http, and process/forward. They
 * refuse these ports on every address of this host. The same port of another
 * host is open.
 *
 * The ports lie in memory that a runner shares with its programs, so those of a
 * reload hold for what runs already.
 *
 * Sources: rtnetlink(7), memfd_create(2), doc/sandbox.md B5.
 */
#pragma once

#include "base.h"

#define OWN_PORTS_MAX 16
/* What a caller returns instead of connecting: no socket call fails with it. */
#define OWN_PORTS_ERRNO EBADRQC
/* Where execd-http and execd-netproxy get them, after CONTROL_FD. */
#define OWN_PORTS_FD 4

/*
 * Makes the memory, without a port in it. Returns a descriptor for this and
 * other programs, which the caller owns, or -errno. All of them guard the
 * ports, so none gains anything by writing there.
 */
int own_ports_share(void);

/* Has these ports guarded from now on instead of others; 0 is none. `fd` is of
 * own_ports_share(). Returns 0 or -errno. */
int own_ports_set(int fd, const uint16_t ports[OWN_PORTS_MAX]);

/*
 * Guards the ports in this program, from the first call on. Returns 0 or
 * -errno. The descriptor stays the caller's, and is not needed any more.
 */
int own_ports_take(int fd);

/* Tells whether this program has taken ports. */
bool own_ports_guards(void);

/*
 * Returns a descriptor, which the caller owns, that tells which addresses are
 * this host's, or -errno.
 */
int own_ports_open(void);

/*
 * Tells whether a connection to the address would reach one of the ports. `fd`
 * is of own_ports_open(). An address about which the kernel gives no answer
 * counts as this host's.
 */
bool own_ports_has(int fd, const struct sockaddr *address);
