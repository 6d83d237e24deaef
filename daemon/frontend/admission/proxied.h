/* SPDX-License-Identifier: ISC */
/*
 * Connections from trusted proxies (trusted-proxy in execd.conf(5)). Each owes
 * a PROXY header, which must come within the pre-auth deadline. Until then it
 * has no source, and it counts against max-connections and, among those that
 * owe a header, against max-unauthenticated. Then its client is treated as if
 * it had connected itself.
 */
#ifndef PROXIED_H
#define PROXIED_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "admission.h"

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

#endif
