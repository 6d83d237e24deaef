/* SPDX-License-Identifier: ISC */
/*
 * Before a session: HTTP upgrade, authentication, initialize.
 */
#ifndef HANDSHAKE_H
#define HANDSHAKE_H

#include "connection.h"

/* One turn of TLS's own handshake. */
void handshake_tls(struct connection *c);

/* Bytes of a connection that is still HTTP. */
void handshake_http(struct connection *c, const char *data, size_t len);

/* stdio has no HTTP: it asks at once. */
void handshake_stdio(struct connection *c);

/* A whole JSON-RPC message while no session is attached. */
void handshake_message(struct connection *c, char *text, size_t len);

/* ATTACHING: asks for the session. The runner answers initialize, which is in
 * the channel already, as soon as it has that; or the broker says why there is
 * none. */
void handshake_attach(struct connection *c);

/* The runner's first bytes: the session stands. */
void handshake_started(struct connection *c);

/* The broker's answers. */
void handshake_verdict(struct connection *c, const struct control_verdict *v);
void handshake_refused(struct connection *c, const struct control_session *s);

/* The broker's counters, for an operator who waits for them. */
void handshake_metrics(struct connection *c, const struct control_metrics *m);

#endif
