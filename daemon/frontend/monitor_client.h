/*
 * The front-end's side of the control channel: requests by function, answers
 * and events by table.
 */
#ifndef MONITOR_CLIENT_H
#define MONITOR_CLIENT_H

#include "connection.h"

/* What CONFIGURE or RELOAD and the LISTENERs behind it say. */
struct offer {
	struct control_configure configure;
	int helpers[TLS_HELPERS]; /* their channels, or -1 */
	struct {
		struct control_listener listener;
		int fds[CONTROL_LISTENER_FDS_MAX];
		size_t nfds;
	} listeners[CONTROL_LISTENERS_MAX];
	uint32_t have; /* listeners so far */
};

/* Waits for all of it; anything else is fatal. The descriptors are the
 * caller's. */
void monitor_wait_configure(struct offer *offer);

/* Serves the control channel from now on. */
void monitor_watch(void);

void monitor_ready(const struct control_ready *r);

/* Answers a PING: this loop turns. */
void monitor_alive(void);

/* Asks for another helper in place of one that does not answer. */
void monitor_helper_hangs(enum tls_helper who);

/* 0, or -ETOOMANYREFS: what the client's socket holds cannot be sent. */
int monitor_authenticate(const struct connection *c, enum credential_kind kind,
    struct slice credential);

/* A new session, or the one of c->wanted, to be attached to or watched; with
 * the runner's end of its channel. 0 or -ETOOMANYREFS. */
int monitor_ask_session(const struct connection *c, int channel_fd);
void monitor_close(const struct connection *c);
void monitor_done(void);
/* A client certificate that TLS refused goes on record. */
void monitor_refused(const struct connection *c, const char *why);
void monitor_ask_metrics(const struct connection *c);

#endif
