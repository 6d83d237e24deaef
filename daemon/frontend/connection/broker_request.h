/* SPDX-License-Identifier: ISC */
/*
 * Requests of the front-end to the broker. The answers are handled in
 * broker_client.c.
 */
#pragma once

#include "base.h"
#include "control.h"

struct connection;

/* Sends a request that belongs to no connection, or waits to send it. */
void broker_tell(enum control_type type, const void *payload);

/* Asks for a new helper in place of one that does not answer. */
void broker_helper_hangs(enum tls_helper who);

/* Sends a credential with AUTHENTICATE, for a session, or with METRICS. Returns
 * 0 or -errno: the client's socket cannot be sent because of what it holds, or
 * too many credentials wait for the broker. */
int broker_authenticate(const struct connection *c, enum control_type type,
    enum credential_kind kind, struct slice credential);

/* Asks for a new session, or for session c->start.wanted, to attach to it or to
 * watch it. channel_fd is the runner's end of the session channel and stays the
 * caller's. Returns 0 or -errno. */
int broker_ask_session(const struct connection *c, int channel_fd);
void broker_close(const struct connection *c);

/* Answers a PROBE. */
void broker_probed(
    const struct connection *c, uint32_t number, enum probe_result result);
/* Reports a client certificate that was refused in TLS, for the audit log. */
void broker_refused(const struct connection *c, const char *why);

/* Sets the function that is told when a request waited for the broker and then
 * could not be sent. The type is AUTHENTICATE, METRICS, OPEN, RESUME or WATCH,
 * and conn is the connection that it was for. */
void broker_on_unsent(void (*tell)(enum control_type type, uint32_t conn));

/* --- whether execd works ------------------------------------------------- */

/*
 * Tells whether execd works. The front-end decides this itself and can
 * therefore answer even while the broker hangs.
 */

/* The broker has sent a message. */
void health_heard(void);

/* Returns for how long the broker has sent nothing. */
int64_t health_silent_ms(void);

/* Starts asking the helpers regularly whether they answer. */
void health_watch(void);

/* The broker says why no session opens, enum broker_ill. */
void health_broker(uint8_t ill);

/* Returns what is wrong, as a line with its newline, or NULL if all is well. */
const char *health_reason(void);

/* --- tokens -------------------------------------------------------------- */

/*
 * The header of a signed token, read for the broker: it parses no JSON of
 * anybody whom it has not authenticated. What is read here only says which key
 * the broker tries; once the signature is good, it reads the header itself.
 */

/* Leaves a member empty that is missing, is no text, or does not fit. */
void token_header_read(struct slice token, struct control_token_header *header);
