/* SPDX-License-Identifier: ISC */
/*
 * From a host to a connection: the name is resolved once, each address is
 * judged, and one of those that were permitted is connected to. What a name
 * leads to later does not matter.
 */
#pragma once

#include "host_name.h"

struct event_base;
struct proxy_dial;

#define PROXY_DIAL_SECONDS 30 /* for the name and the connection together */

struct proxy_dial_events {
	/* Tells whether this address may be connected to. */
	bool (*permit)(void *arg, const struct in6_addr *address);
	/* Connected; fd is the receiver's. The dial is over and freed. */
	void (*connected)(void *arg, int fd);
	/* Not connected; over and freed. err: EACCES if no address was
	 * permitted, OWN_PORTS_ERRNO for a port of execd itself, 0 if the name
	 * has no address, else what connect(2) said. */
	void (*failed)(void *arg, int err, const char *why);
};

/* own_ports_take() comes first. */
void proxy_dial_init(struct event_base *base);

/* Begins; an event follows, never before the return. */
struct proxy_dial *proxy_dial(const struct host_name *host, uint16_t port,
    const struct proxy_dial_events *events, void *arg);

/* Ends it without an event. */
void proxy_dial_cancel(struct proxy_dial *d);
