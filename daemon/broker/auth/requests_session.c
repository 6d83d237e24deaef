/* SPDX-License-Identifier: ISC */
/*
 * The front-end's requests for sessions: to open a new one, to resume one, and
 * to watch one.
 */
#include "requests_parts.h"

#include <errno.h>
#include <stdio.h>

#include "broker_state.h"
#include "conf.h"
#include "frontend_child.h"
#include "grant.h"
#include "session_audit.h"
#include "session_ended.h"
#include "session_registry.h"
#include "util.h"

static struct origin
origin_of(const struct grant *g)
{
	return (struct origin){ g->peer, g->proxy };
}

/* On success the runner answers the client; only failures are answered here.
 * The runner's end of the channel goes back with the answer, so that the
 * front-end reads the answer before it sees the channel end. */
static void
finish_request(struct broker *m, enum control_type answer_type,
    const struct control_session *answer, const struct grant *g, int *fd)
{
	struct origin from;

	if (answer->result == SESSION_OK)
		return;
	from = origin_of(g);
	session_audit_refused(m, g->identity, &from, answer);
	frontend_send(m->frontend, answer_type, answer, steal_fd(fd));
}

static bool
is_ending(const struct broker *m, struct control_session *answer)
{
	const char *reason = drain_reason(m);

	if (reason == NULL)
		return false;
	answer->result = SESSION_LIMIT;
	snprintf(answer->reason, sizeof(answer->reason), "%s", reason);
	return true;
}

/* Says which of several hosts this is, and why the operator ended the session,
 * if he did. */
static void
explain_unknown(const struct broker *m, const struct grant *g, const char *id,
    struct control_session *answer)
{
	const struct listener *l = request_listener(m, g->listener);
	const char *reason = session_ended_reason(g->identity, id);

	if (answer->result != SESSION_UNKNOWN)
		return;
	if (reason != NULL)
		snprintf(answer->reason, sizeof(answer->reason), "%s", reason);
	if (l != NULL && l->host_tag != NULL)
		snprintf(answer->host, sizeof(answer->host), "%s", l->host_tag);
}

int
request_open(struct broker *m, const uint8_t *packet, size_t len, int *fd)
{
	struct control_open o;
	struct control_session answer = { 0 };
	struct grant *g;

	REQUEST(BROKER_REQ_OPEN, &o, packet, len);
	g = grant_take(m->frontend, o.conn, o.grant);
	if (g == NULL)
		return -EPERM;
	answer.conn = o.conn;
	if (!is_ending(m, &answer))
		answer.result = session_open(m, g->identity, g->conn,
		    origin_of(g), &g->session, *fd, answer.reason);
	finish_request(m, BROKER_ANS_OPEN, &answer, g, fd);
	return 0;
}

/* Answers RESUME and WATCH, which name an existing session. */
static int
request_existing(struct broker *m, enum control_type type,
    const uint8_t *packet, size_t len, int *fd)
{
	bool watch = type == BROKER_REQ_WATCH;
	struct control_resume r;
	struct control_session answer = { 0 };
	struct grant *g;

	REQUEST(type, &r, packet, len);
	g = grant_take(m->frontend, r.conn, r.grant);
	if (g == NULL)
		return -EPERM;
	answer.conn = r.conn;
	answer.result =
	    watch ? session_watch(m, g->identity, r.session_id, g->conn,
			origin_of(g), &g->session, *fd, answer.reason)
		  : session_resume(m, g->identity, r.session_id, g->conn,
			origin_of(g), &g->session, *fd);
	explain_unknown(m, g, r.session_id, &answer);
	g->watching = watch && answer.result == SESSION_OK;
	finish_request(
	    m, watch ? BROKER_ANS_WATCH : BROKER_ANS_RESUME, &answer, g, fd);
	return 0;
}

int
request_resume(struct broker *m, const uint8_t *packet, size_t len, int *fd)
{
	return request_existing(m, BROKER_REQ_RESUME, packet, len, fd);
}

int
request_watch(struct broker *m, const uint8_t *packet, size_t len, int *fd)
{
	return request_existing(m, BROKER_REQ_WATCH, packet, len, fd);
}
