/* SPDX-License-Identifier: ISC */
/*
 * A connection of a command: from its first byte to a relay between it and the
 * host it asked for.
 */
#pragma once

#include "proxy_list.h"

struct event_base;

void proxy_client_init(struct event_base *base);

/* Takes a connection that a command made; fd becomes the client's. */
void proxy_client_new(struct proxy_list *l, int fd);

/* Takes a connection that a command made to what stands for this host. */
void proxy_client_direct(
    struct proxy_list *l, int fd, const struct host_name *host, uint16_t port);

/* Takes a connection to the resolver, for look-ups by TCP. */
void proxy_client_resolve(struct proxy_list *l, int fd);

/* The runner's answer to an ASK; one that nobody waits for is nothing. */
void proxy_client_answered(struct proxy_list *l, uint32_t ask, bool allowed);

/* The list is closed: its connections end with a reset. */
void proxy_client_end_all(struct proxy_list *l);
