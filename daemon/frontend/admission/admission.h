/* SPDX-License-Identifier: ISC */
/*
 * The way of an accepted socket to a connection. First the limits and penalties
 * of its source are checked. Then it gets one of the slots for connections
 * without a credential, or waits in the queue (source.h). A client that waits
 * for as long as the pre-auth deadline, or finds no place in the queue, is told
 * to come again.
 */
#pragma once

#include <event2/event.h>
#include <netinet/in.h>

#include "base.h"
#include "source.h"

/* The number of connections for which there are descriptors. Set once, before
 * the first connection. */
extern uint32_t admission_connections_max;

struct visitor {
	struct fair_waiter waiter;
	TAILQ_ENTRY(visitor) age; /* ages, oldest first */
	struct source *source;	  /* NULL: exempt, or no IP address */
	uint32_t listener;	  /* control_listener.id */
	bool tls;
	int fd; /* owned */
	int64_t since_ms;
	char peer[CONTROL_PEER_MAX];
	char proxy[CONTROL_PEER_MAX]; /* a trusted one it came through, or "" */
};

/* What happens after admission. */
struct admission_target {
	/* Begins the visitor's connection. Returns false if its listener has
	 * been closed; the descriptor then stays the caller's. */
	bool (*begin)(const struct visitor *v, bool slot);
	unsigned (*count)(void); /* connections, those without a header too */
};

/* Call once, before the first visitor. */
void admission_init(const struct admission_target *target);

/* Returns true if max-connections permits another connection. Otherwise refuses
 * the visitor and closes its descriptor. */
bool admission_has_room(const struct visitor *v);

/* v is copied, and its descriptor is taken over. The connection begins now or
 * later, or is refused. `from` is where its client is; NULL exempts it from
 * what sources are limited in. */
void admission_take(const struct visitor *v, const struct sockaddr *from);

/* Answers with 503 unless the connection needs TLS, and closes the descriptor.
 * wait_ms becomes its Retry-After. */
void admission_refuse(int fd, bool tls, int64_t wait_ms);

/* Gives a slot back and lets the next visitor in. */
void admission_leave(struct source *source);

/* Applies a new configuration. */
void admission_reload(void);

/* Sends all waiting visitors away. */
void admission_end(void);

size_t admission_waiting(void);

/* Sets the timer for the pre-auth deadline of the oldest visitor; NULL: there
 * is none. */
void admission_arm(
    struct event *ev, const struct visitor *oldest, event_callback_fn expire);

/* --- proxied.c ----------------------------------------------------------- */

/*
 * Connections from trusted proxies (trusted-proxy in execd.conf(5)). Each owes
 * a PROXY header, which must come within the pre-auth deadline. Until then it
 * has no source, and it counts against max-connections and, among those that
 * owe a header, against max-unauthenticated. Then its client is treated as if
 * it had connected itself.
 */

/* Called by a listener for a connection from a trusted proxy, whose address is
 * v->peer. v is copied, and its descriptor is taken over. */
void proxied_take(const struct visitor *v);

/* Applies a new configuration. */
void proxied_reload(void);

/* Closes all connections that owe a header. */
void proxied_end(void);

/* Returns the number of connections that owe a header. */
size_t proxied_count(void);

/*
 * The header of the PROXY protocol, version 2, as haproxy defines it. A proxy
 * sends it before everything else and says where its client is. This file only
 * decodes; whose header is believed is the listener's decision.
 */

/* The longest header that is accepted: the fixed part, two AF_UNIX addresses,
 * and 304 bytes of what a proxy adds. */
#define PROXY_HEADER_MAX 536

struct proxy_header {
	bool local; /* the proxy's own connection, such as a health check */
	/* Where the client is: AF_INET or AF_INET6. Not set with `local`. */
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} from;
};

/*
 * Decodes the n bytes of a header that have come so far. Returns how many bytes
 * are to be read next: reading no more leaves what is behind the header in the
 * socket. Returns 0 when the header is complete and *h is filled in, or
 * -EBADMSG with the reason in *why.
 */
int proxy_header_parse(
    const uint8_t *p, size_t n, struct proxy_header *h, const char **why);
