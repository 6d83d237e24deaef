/* SPDX-License-Identifier: ISC */
/*
 * The states of a connection. This file alone changes the state, and it alone
 * begins and ends the data that a state has. What else a transition brings
 * along, such as a timer, is in the function that decides it.
 */
#include "connection.h"

#include <assert.h>

void
start_clear(struct start *start)
{
	rpc_id_clear(&start->id);
	buf_clear(&start->initialize);
}

static void
end_data(struct connection *c)
{
	switch (c->state) {
	case CONN_AUTHENTICATING:
		buf_clear(&c->authenticating.upgrade);
		break;
	case CONN_ATTACHING:
	case CONN_STARTING:
		start_clear(&c->start);
		break;
	case CONN_LEAVING:
		rpc_id_clear(&c->leaving.unanswered);
		break;
	default:
		break;
	}
}

/* A connection goes from state to state in the order of their enum. Only a
 * session that could not be started leads back. */
static void
change_state(struct connection *c, enum connection_state state)
{
	assert(state > c->state ||
	       (c->state == CONN_STARTING && state == CONN_OPEN));
	end_data(c);
	c->state = state;
}

void
connection_to_http(struct connection *c)
{
	change_state(c, CONN_HTTP);
}

void
connection_to_operating(struct connection *c, bool head_only)
{
	change_state(c, CONN_OPERATING);
	c->operating.head_only = head_only;
}

void
connection_to_authenticating(struct connection *c, struct buf *upgrade)
{
	change_state(c, CONN_AUTHENTICATING);
	c->authenticating.upgrade = *upgrade;
	*upgrade = (struct buf){ 0 };
}

struct buf
connection_to_open(struct connection *c)
{
	struct buf upgrade = c->authenticating.upgrade;

	c->authenticating.upgrade = (struct buf){ 0 };
	change_state(c, CONN_OPEN);
	return upgrade;
}

void
connection_to_attaching(struct connection *c, struct start *start)
{
	change_state(c, CONN_ATTACHING);
	c->start = *start;
	*start = (struct start){ 0 };
}

/* ATTACHING and STARTING have the same data. */
void
connection_to_starting(struct connection *c)
{
	assert(c->state == CONN_ATTACHING);
	c->state = CONN_STARTING;
}

struct start
connection_back_to_open(struct connection *c)
{
	struct start start = c->start;

	c->start = (struct start){ 0 };
	change_state(c, CONN_OPEN);
	return start;
}

void
connection_to_attached(struct connection *c)
{
	change_state(c, CONN_ATTACHED);
	c->attached.pinged_ms = 0;
	c->attached.message = MESSAGE_WHOLE;
}

void
connection_to_leaving(struct connection *c)
{
	struct rpc_id unanswered = { 0 };

	if (c->state == CONN_STARTING) {
		unanswered = c->start.id;
		c->start.id = (struct rpc_id){ 0 };
	}
	change_state(c, CONN_LEAVING);
	c->leaving.unanswered = unanswered;
}

void
connection_to_closing(struct connection *c)
{
	change_state(c, CONN_CLOSING);
	c->closing.shut = false;
}

void
connection_to_gone(struct connection *c)
{
	change_state(c, CONN_GONE);
}

void
connection_to_dead(struct connection *c)
{
	change_state(c, CONN_DEAD);
}
