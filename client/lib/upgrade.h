/* SPDX-License-Identifier: ISC */
/*
 * The HTTP upgrade of a WebSocket client (RFC 6455 section 4.1).
 */
#ifndef UPGRADE_H
#define UPGRADE_H

#include "buf.h"
#include "url.h"
#include "websocket.h"

/* Appends the request and notes in accept[] what its answer must say. 0 or
 * -errno: no random numbers. */
int upgrade_request(struct buf *out, const struct endpoint *e,
    const char *token, char accept[WEBSOCKET_ACCEPT_LEN + 1]);

/*
 * Reads the answer from text[0..len). 0: incomplete. Positive: its length;
 * *status is the HTTP status, and for 101 accept was right. -EPROTO: no HTTP,
 * or a 101 that is none; *why is then a constant text.
 */
ssize_t upgrade_answer(const char *text, size_t len, const char *accept,
    int *status, const char **why);

#endif
