/* SPDX-License-Identifier: ISC */
/*
 * The door between the front-end and the broker: the table of what may be
 * asked, and the grants that were given (doc/design.md section 3).
 */
#ifndef REQUESTS_H
#define REQUESTS_H

#include <stddef.h>
#include <stdint.h>

struct broker;
struct session;

/* Answers one request; *fd (or -1) came with it and stays the caller's, unless
 * it is -1 then. 0, or
 * the violation: -ENOSYS not in the table, -EACCES not permitted now, -EBADMSG
 * does not decode, -EPERM asks for what it was not granted. */
int request_take(struct broker *m, const uint8_t *packet, size_t len, int *fd);

/* A violation in words, for the log. */
const char *request_violation(int err);

/* The front-end is gone, and its connections with it; their sessions wait for
 * them to come back. */
void requests_forget(struct broker *m);

/* The runner of a session is gone; its connection, if any, is told why. */
void requests_session_ended(
    struct broker *m, struct session *s, const char *reason);

#endif
