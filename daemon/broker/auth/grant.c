/* SPDX-License-Identifier: ISC */
/*
 * Grants.
 */
#include "grant.h"

#include <string.h>
#include <sys/random.h>

#include "broker_state.h"
#include "frontend_child.h"
#include "identity.h"
#include "log.h"
#include "session_registry.h"
#include "util.h"

static bool
match_conn(const struct table_node *node, const void *key)
{
	return TABLE_OBJECT(node, const struct grant, node)->conn ==
	       *(const uint32_t *)key;
}

struct grant *
grant_find(struct frontend *f, uint32_t conn)
{
	struct table_node *node =
	    table_find(&f->grants, conn, match_conn, &conn);

	return node ? TABLE_OBJECT(node, struct grant, node) : NULL;
}

void
grant_free(struct frontend *f, struct grant *g)
{
	table_remove(&f->grants, &g->node);
	identity_unref(g->identity);
	explicit_bzero(g, sizeof(*g));
	free(g);
}

struct grant *
grant_new(struct frontend *f, const struct control_authenticate *presented,
    struct identity *who)
{
	struct grant *g = xcalloc(1, sizeof(*g));

	g->conn = presented->conn;
	g->listener = presented->listener;
	g->identity = identity_ref(who);
	memcpy(g->peer, presented->peer, sizeof(g->peer));
	memcpy(g->proxy, presented->proxy, sizeof(g->proxy));
	if (getrandom(g->token, sizeof(g->token), 0) !=
	    (ssize_t)sizeof(g->token))
		log_fatal("getrandom: no random bytes");
	table_insert(&f->grants, &g->node, g->conn);
	return g;
}

/* Compares all bytes, so that the time does not tell where the first difference
 * is. */
static bool
token_equal(const uint8_t *a, const uint8_t *b)
{
	uint8_t difference = 0;

	for (size_t i = 0; i < CONTROL_GRANT_BYTES; i++)
		difference |= a[i] ^ b[i];
	return difference == 0;
}

struct grant *
grant_take(struct frontend *f, uint32_t conn, const uint8_t *token)
{
	struct grant *g = grant_find(f, conn);

	if (g == NULL || !token_equal(g->token, token) || g->session != NULL ||
	    g->ended)
		return NULL;
	return g;
}

bool
grant_is_closing(const struct grant *g)
{
	if (g->session == NULL)
		return false;
	return g->watching ? session_watcher(g->session, g->conn)->close_asked
			   : g->session->attachment.close_asked;
}
