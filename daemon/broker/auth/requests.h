/* SPDX-License-Identifier: ISC */
/*
 * The front-end's requests to the broker: the table of requests, and the grants
 * that were given (doc/design.md section 3).
 */
#pragma once

#include "base.h"

struct broker;
struct identity;
struct session;

/* Answers one request. *fd, or -1, came with it. It stays the caller's, unless
 * it is -1 afterwards. Returns 0, or the violation: -ENOSYS if the request is
 * not in the table, -EACCES if it is not permitted now, -EBADMSG if it does not
 * decode, -EPERM if it asks for what was not granted. */
int request_take(struct broker *m, const uint8_t *packet, size_t len, int *fd);

/* Describes a violation for the log. */
const char *request_violation(int err);

/* The front-end is gone, and its connections with it. Their sessions wait to be
 * resumed. */
void requests_forget(struct broker *m);

/* It is known whether sessions of the identity may begin. */
void requests_account_known(struct broker *m, struct identity *id);

/* A session of another broker goes on. It is ended if its client's token has
 * expired and could resume it no more: its key or its identity was removed. */
void requests_session_adopted(struct broker *m, struct session *s);
/* Somebody waits for the session, and gets it if it is free now. */
void requests_probed(struct broker *m, struct session *s);

/* The runner of a session is gone. Its connection, if there is one, is told
 * why. */
void requests_session_ended(
    struct broker *m, struct session *s, const char *reason);
