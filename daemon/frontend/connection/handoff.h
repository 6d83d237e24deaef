/* SPDX-License-Identifier: ISC */
/*
 * Connections that were handed over to their runners (doc/design.md section 3).
 * Without TLS there is nothing for a relay to do once a session exists. The
 * runner then speaks WebSocket with the client itself. The front-end keeps the
 * client's socket, to close the connection properly, and the session channel,
 * on which the runner reports about the client.
 */
#ifndef HANDOFF_H
#define HANDOFF_H

#include "connection.h"

/* Call once, before the first connection. */
void handoff_init(void);

/* Hands the client over: its socket goes into the session channel, together
 * with its initialize and what it sent after that. Returns false if the client
 * stays here; its messages are then relayed. */
bool handoff_begin(struct connection *c);

/* Takes the client back, because no runner has received it. */
void handoff_refused(struct connection *c);

void handoff_free(struct handoff *h);

/* Returns true if the connection's timer is the handoff's: the runner has been
 * given some time. */
bool handoff_waits(const struct connection *c);

/* Reads reports of the runner. */
void handoff_read(struct connection *c);

/* The connection's timer: the runner has had enough time. */
void handoff_timeout(struct connection *c);

/* No runner has the client any more. If it was being reclaimed, closes it now
 * and returns true. */
bool handoff_return(struct connection *c);

/* The client is to be closed with this code and reason. Returns true if its
 * runner was asked to let go of it first; the connection is closed after
 * that. */
bool handoff_reclaim(struct connection *c, uint16_t code, const char *reason);

/* Stops watching whether the client hangs up. Call before the socket is closed,
 * because the runner may still have it open. */
void handoff_unwatch(const struct connection *c);

#endif
