/* SPDX-License-Identifier: ISC */
/*
 * What the front-end asks of the broker. The answers come as events
 * (broker_client.h).
 */
#ifndef BROKER_REQUEST_H
#define BROKER_REQUEST_H

#include "control.h"

struct connection;

void broker_ready(const struct control_ready *r);

/* Answers a PING: this loop turns. */
void broker_alive(void);

/* Asks for another helper in place of one that does not answer. */
void broker_helper_hangs(enum tls_helper who);

/* 0, or -errno: what the client's socket holds cannot be sent, or too many
 * credentials wait for the broker. */
int broker_authenticate(const struct connection *c, enum credential_kind kind,
    struct slice credential);

/* A new session, or the one of c->wanted, to be attached to or watched; with
 * the runner's end of its channel. 0 or -errno. */
int broker_ask_session(const struct connection *c, int channel_fd);
void broker_close(const struct connection *c);
void broker_done(void);
/* A client certificate that TLS refused goes on record. */
void broker_refused(const struct connection *c, const char *why);
void broker_ask_metrics(const struct connection *c);

/* Who hears of a request that waited for the broker and then could not be
 * sent: AUTHENTICATE, OPEN, RESUME or WATCH of that connection. */
void broker_on_unsent(void (*tell)(enum control_type type, uint32_t conn));

#endif
