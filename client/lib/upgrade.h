/* SPDX-License-Identifier: ISC */
/*
 * The HTTP upgrade of a WebSocket client (RFC 6455 section 4.1).
 */
#pragma once

#include "buf.h"
#include "url.h"
#include "websocket.h"

/* The longest pair NAME=VALUE of a cookie that is kept, with NUL. */
#define UPGRADE_COOKIE_MAX 256

/* Appends the request and stores in accept[] the key that the answer must have.
 * The cookie is a pair NAME=VALUE; it and the token may be NULL. Returns 0, or
 * -errno if there are no random numbers. */
int upgrade_request(struct buf *out, const struct endpoint *e,
    const char *token, const char *cookie,
    char accept[WEBSOCKET_ACCEPT_LEN + 1]);

/*
 * Reads the answer from text[0..len). Returns 0 if it is incomplete, or its
 * length. *status is then the HTTP status, and with 101 the key was right.
 * -EPROTO: it is not HTTP, or a 101 with a wrong key; *why is then a constant
 * text.
 */
ssize_t upgrade_answer(const char *text, size_t len, const char *accept,
    int *status, const char **why);

/* Copies the pair NAME=VALUE of the first Set-Cookie header that has one of at
 * most UPGRADE_COOKIE_MAX - 1 bytes (RFC 6265 section 4.1.1). Its attributes do
 * not count. Returns false if there is none. text[0..len) is a whole answer. */
bool upgrade_cookie(
    const char *text, size_t len, char cookie[UPGRADE_COOKIE_MAX]);

/* Stores the pair if it could have come from an answer, else "". */
void upgrade_keep_cookie(char cookie[UPGRADE_COOKIE_MAX], const char *pair);

/* Tells whether the answer has a header of this name. */
bool upgrade_has_header(const char *text, size_t len, const char *name);
