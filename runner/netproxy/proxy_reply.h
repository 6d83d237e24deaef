/* SPDX-License-Identifier: ISC */
/* What a command is told that may not, or cannot, reach a host. Pure. */
#pragma once

#include "netproxy_message.h"

/* Writes the reply of HTTP to a request that is refused by rules. */
void proxy_reply_denied(struct buf *b, const struct netproxy_decided *d);

/* Writes a reply of HTTP for what is no matter of rules. */
void proxy_reply_failed(
    struct buf *b, int status, const char *host, const char *why);
