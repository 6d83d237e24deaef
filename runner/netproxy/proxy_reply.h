/* SPDX-License-Identifier: ISC */
/* What a command is told that may not, or cannot, reach a host. Pure. */
#ifndef PROXY_REPLY_H
#define PROXY_REPLY_H

#include "netproxy_message.h"

/* Names in messages to clients of execd (execd-protocol(7)). */
const char *proxy_protocol_name(enum netproxy_protocol p);
const char *proxy_source_name(enum netproxy_source s);
const char *proxy_reason_name(enum netproxy_reason r);

/* Writes the reply of HTTP to a request that is refused by rules. */
void proxy_reply_denied(struct buf *b, const struct netproxy_decided *d);

/* Writes a reply of HTTP for what is no matter of rules. */
void proxy_reply_failed(
    struct buf *b, int status, const char *host, const char *why);

#endif
