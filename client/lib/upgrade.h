/* SPDX-License-Identifier: ISC */
/*
 * The HTTP upgrade of a WebSocket client (RFC 6455 section 4.1).
 */
#ifndef UPGRADE_H
#define UPGRADE_H

#include "buf.h"
#include "url.h"
#include "websocket.h"

/* Appends the request and stores in accept[] the key that the answer must have.
 * Returns 0, or -errno if there are no random numbers. */
int upgrade_request(struct buf *out, const struct endpoint *e,
    const char *token, char accept[WEBSOCKET_ACCEPT_LEN + 1]);

/*
 * Reads the answer from text[0..len). Returns 0 if it is incomplete, or its
 * length. *status is then the HTTP status, and with 101 the key was right.
 * -EPROTO: it is not HTTP, or a 101 with a wrong key; *why is then a constant
 * text.
 */
ssize_t upgrade_answer(const char *text, size_t len, const char *accept,
    int *status, const char **why);

#endif
