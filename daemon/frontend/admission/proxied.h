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

#include <stddef.h>

#include "admission.h"

/* Called by a listener for a connection from a trusted proxy, whose address is
 * v->peer. v is copied, and its descriptor is taken over. */
void proxied_take(const struct visitor *v);

/* Applies a new configuration. */
void proxied_reload(void);

/* Closes all connections that owe a header. */
void proxied_end(void);

/* The number of connections that owe a header. */
size_t proxied_count(void);

#endif
