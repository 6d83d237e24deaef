/* SPDX-License-Identifier: ISC */
/*
 * The phases before a session: TLS, HTTP upgrade, authentication and
 * initialize.
 */
#ifndef HANDSHAKE_H
#define HANDSHAKE_H

#include "connection.h"

/* Continues the TLS handshake. */
void handshake_tls(struct connection *c);

/* Handles bytes while the connection is in its HTTP phase. */
void handshake_http(struct connection *c, const char *data, size_t len);

/* Begins a connection over stdio. It has no HTTP phase and asks for its verdict
 * at once. */
void handshake_stdio(struct connection *c);

/* Handles a whole JSON-RPC message while there is no session. */
void handshake_message(struct connection *c, char *text, size_t len);

/* ATTACHING: asks for the session. The runner answers the initialize that is
 * already in the channel, or the broker says why there is no session. */
void handshake_attach(struct connection *c);

/* The first bytes of the runner came: the session exists. */
void handshake_started(struct connection *c);

/* Handle answers of the broker. */
void handshake_verdict(struct connection *c, const struct control_verdict *v);
void handshake_refused(struct connection *c, const struct control_session *s);

/* Sends the metrics to an operator who waits for the broker's counters. */
void handshake_metrics(struct connection *c, const struct control_metrics *m);

#endif
