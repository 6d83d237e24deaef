/* SPDX-License-Identifier: ISC */
/*
 * Grants: who authenticated on a connection of the front-end. A grant is random
 * and dies with its connection; OPEN and RESUME take one, never a user.
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
	uint8_t token[CONTROL_GRANT_BYTES];
	char peer[CONTROL_PEER_MAX];
	char proxy[CONTROL_PEER_MAX]; /* a trusted one in between, or "" */
	struct identity *identity;    /* a reference */
	struct session *session;      /* NULL: none, or it ended */
	bool watching;		      /* it only watches that session */
	bool ended;		      /* its session ended under it */
	enum channel_end end;	      /* how */
	char reason[256];	      /* why */
};

/* NULL: the connection has none. */
struct grant *grant_find(struct frontend *f, uint32_t conn);

/* A grant for the connection that presented this. The front-end owns it. */
struct grant *grant_new(struct frontend *f,
    const struct control_authenticate *presented, struct identity *who);
void grant_free(struct frontend *f, struct grant *g);

/* The grant behind a request that starts or resumes a session, if the token is
 * its own and it has no session yet; else NULL. */
struct grant *grant_take(
    struct frontend *f, uint32_t conn, const uint8_t *token);

/* Is CLOSE under way already? */
bool grant_is_closing(const struct grant *g);

#endif
