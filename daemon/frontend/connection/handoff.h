/* SPDX-License-Identifier: ISC */
/*
 * Connections that their runners have (doc/design.md section 3): without TLS
 * there is nothing more for a relay to do once a session is there. The runner
 * speaks WebSocket with the client itself; here its socket is kept, for the
 * last words, and the session channel, on which the runner says what becomes
 * of the client.
 */
#ifndef HANDOFF_H
#define HANDOFF_H

#include "connection.h"

/* Hands the client over, on its way into the channel, with its initialize and
 * what it sent behind it. False: it stays here, and its messages are passed
 * on. */
bool handoff_begin(struct connection *c);

/* There is no runner that it could have gone to. */
void handoff_refused(struct connection *c);

/* Reports of the runner are there. */
void handoff_read(struct connection *c);

/* Its client will send no more, or nothing will reach it. */
void handoff_hung_up(struct connection *c);

/* The connection's timer: the runner has had its time. */
void handoff_timeout(struct connection *c);

/* It was wanted back, and its runner is no more: it is ended here and now. */
void handoff_return(struct connection *c);

/* The client is to be ended with that code and reason. True: its runner is
 * asked to let go of it first. */
bool handoff_reclaim(struct connection *c, uint16_t code, const char *reason);

#endif
