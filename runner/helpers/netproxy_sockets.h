/* SPDX-License-Identifier: ISC */
/*
 * The sockets of a command's list of hosts, which are made in its sandbox and
 * served by execd-netproxy: the proxy's port, the resolver, and either a
 * listener for each port of each name that was looked up, or one for everything
 * that is redirected (redirect.h).
 *
 * Each list has a block of addresses for itself, so the address that a command
 * asks, or connects to, tells whose the decision is. An address stands for one
 * name as long as the command lives, also after execd-netproxy came back.
 */
#pragma once

#include "network.h"

struct sandbox;

/* LOOPBACK_NAMES has 512 blocks of 256 addresses. Lists use the blocks 1 to
 * NETPROXY_BLOCKS. The kernel treats some addresses of block 0 and of the last
 * block differently, so no list gets these. */
#define NETPROXY_BLOCKS 510

/*
 * Makes the listener and, unless block is 0, the resolver, and for a list that
 * wants it the listener for what is redirected. Returns 0 with the
 * sockets in *n and *port of 127.0.0.1; or -errno as sandbox_sockets().
 */
int netproxy_sockets_make(
    struct network *n, struct sandbox *sandbox, unsigned block, uint16_t *port);

/* Returns the block of a list, 0: none. */
unsigned netproxy_sockets_block(const struct network *n);

/*
 * Makes the listeners of a name that is new to execd-netproxy. Returns 0 with
 * *address in host order and a descriptor for each port, which the caller owns;
 * -ENOSPC if there are NETPROXY_NAMES_MAX; -ESTALE if the sandbox has ended; or
 * another -errno.
 */
int netproxy_sockets_name(struct network *n, const struct netproxy_name *asked,
    uint32_t *address, int fds[NETPROXY_PORTS_MAX]);

/*
 * Resets the connections that wait at the proxy's port, and drops the questions
 * that wait at the resolver; an asker repeats his. Returns how many there were.
 */
unsigned netproxy_sockets_refuse(const struct network *n);

void netproxy_sockets_close(const int *fds, size_t n);
