/* SPDX-License-Identifier: ISC */
/*
 * The network namespace of a sandbox whose network is restricted: nothing but a
 * loopback interface of its own, and routes that refuse everything else.
 *
 * It also makes sockets in that namespace that leave it. A socket belongs for
 * ever to the namespace in which it was made, so whoever holds the descriptor
 * listens or connects inside, wherever it runs. This is how a helper outside
 * serves a port of the sandbox, and how a client reaches one.
 *
 * Sources: rtnetlink(7), netdevice(7), network_namespaces(7).
 */
#pragma once

#include "base.h"

/*
 * RFC 2544's network for tests of devices, in which no host of the internet has
 * an address. In a sandbox with a list of hosts all of its addresses are on lo:
 * execd-netproxy serves names there (runner/netproxy/proxy_names.h), and every
 * port of 127.0.0.0/8 stays the command's. Numbers in host order.
 */
#define LOOPBACK_NAMES	    0xc6120000u /* 198.18.0.0 */
#define LOOPBACK_NAMES_BITS 15

#define LOOPBACK_INDEX 1 /* lo is the first interface of every namespace */

/* Sockets that are made at once. */
#define LOOPBACK_SOCKETS_MAX 8

/*
 * Brings lo up in a new network namespace of the caller, which needs
 * CAP_NET_ADMIN there. Then 127.0.0.1 and, where the kernel has IPv6, ::1
 * answer, and every other address is refused with EACCES: a command is told
 * "Permission denied", by which clients know that a sandbox denied it. Where
 * the kernel lacks such routes the answer is ENETUNREACH. Returns 0, or -errno
 * with *step.
 */
int loopback_prepare(const char **step);

/*
 * Gives lo the addresses of LOOPBACK_NAMES. Without them on an interface,
 * getaddrinfo(3) with AI_ADDRCONFIG would find no IPv4 here. Returns 0 or
 * -errno.
 */
int loopback_add_names(void);

/* Sends requests to the kernel on a netlink socket, and waits for the first
 * acknowledgement. Returns 0 or -errno. */
int loopback_ask(int fd, const void *request, size_t len);

/* A socket to make. It is close-on-exec and non-blocking. */
struct loopback_socket {
	uint8_t type;	     /* SOCK_STREAM or SOCK_DGRAM */
	bool ipv6;	     /* false: IPv4 */
	bool bound;	     /* to the address below, on lo, and the port */
	bool listens;	     /* SOCK_STREAM: it is bound, and listens */
	uint8_t address[16]; /* IPv4: the first 4 bytes, in network order */
	uint16_t port;	     /* host order; 0: the kernel chooses one */
};

/*
 * Makes a socket in the caller's network namespace. A port below 1024 needs
 * CAP_NET_BIND_SERVICE there. Returns a descriptor, or -errno: -EINVAL for what
 * the struct does not describe or for an address that is not on loopback, and
 * those of socket(2), bind(2) and listen(2).
 */
int loopback_socket(const struct loopback_socket *s);

/*
 * Makes n sockets, at most LOOPBACK_SOCKETS_MAX, or none. Returns 0 with fds[],
 * or -errno as loopback_socket().
 */
int loopback_sockets(const struct loopback_socket *s, size_t n, int *fds);
