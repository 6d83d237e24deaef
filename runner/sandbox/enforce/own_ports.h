/* SPDX-License-Identifier: ISC */
/*
 * The ports of execd that start a command for whoever connects. A command with
 * the network of the host would leave its sandbox there, so the proxy for
 * connect(2) (connect_proxy.h) refuses these ports on every address of this
 * host. The same port of another host is open.
 *
 * Sources: rtnetlink(7), doc/sandbox.md B5.
 */
#ifndef OWN_PORTS_H
#define OWN_PORTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "sandbox_limits.h"

/*
 * Returns a descriptor, which the caller owns, that tells which addresses are
 * this host's, or -1.
 */
int own_ports_open(void);

/* Guards these ports from now on. Without a call there are none. */
void own_ports_set(const uint16_t ports[SANDBOX_OWN_PORTS_MAX]);

/* Tells whether ports are guarded. */
bool own_ports_any(void);

/*
 * Tells whether a connection to the address would reach one of the ports. `fd`
 * is of own_ports_open(). An address about which the kernel gives no answer
 * counts as this host's.
 */
bool own_ports_has(int fd, const struct sockaddr_storage *address);

#endif
