/* SPDX-License-Identifier: ISC */
/*
 * Grants. A grant says who authenticated on a connection of the front-end. It
 * is random and dies with its connection. OPEN and RESUME take a grant, and
 * never a user.
 */
#ifndef GRANT_H
#define GRANT_H

#include <stdbool.h>
#include <stdint.h>

#include "control.h"
#include "table.h"

struct frontend;
struct identity;
struct session;

struct grant {
	struct table_node node; /* frontend.grants */
	uint32_t conn;
	uint32_t listener; /* control_listener.id */
	uint8_t token[CONTROL_GRANT_BYTES];
	char peer[CONTROL_PEER_MAX];
	/* address of the trusted proxy in between, or "" */
	char proxy[CONTROL_PEER_MAX];
	struct identity *identity; /* a reference */
	struct session *session;   /* NULL: there is none, or it ended */
	bool watching; /* the connection only watches that session */
	bool ended;    /* the session ended while the connection had it */
	enum channel_end end; /* how it ended */
	char reason[256];     /* why it ended */
};

/* Returns NULL if the connection has no grant. */
struct grant *grant_find(struct frontend *f, uint32_t conn);

/* Makes a grant for the connection that showed this credential. The front-end
 * owns it. */
struct grant *grant_new(struct frontend *f,
    const struct control_authenticate *presented, struct identity *who);
void grant_free(struct frontend *f, struct grant *g);

/* Returns the grant for a request that starts or resumes a session. Returns
 * NULL if the token is not the connection's, or if it has a session already. */
struct grant *grant_take(
    struct frontend *f, uint32_t conn, const uint8_t *token);

/* Tells whether CLOSE was asked for already. */
bool grant_is_closing(const struct grant *g);

#endif
