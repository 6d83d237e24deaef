/* SPDX-License-Identifier: ISC */
/*
 * What happens to a grant when the front-end or the runner of its session is
 * gone.
 */
#include "requests.h"

#include <stdio.h>

#include "broker_state.h"
#include "frontend_child.h"
#include "grant.h"
#include "session_registry.h"

/* The front-end's connections are gone. Their sessions wait to be resumed. */
void
requests_forget(struct broker *m)
{
	struct frontend *f = m->frontend;
	struct table_node *node;

	while ((node = table_any(&f->grants)) != NULL) {
		struct grant *g = TABLE_OBJECT(node, struct grant, node);
		enum channel_end end;

		if (g->session != NULL && g->watching)
			session_forget_watcher(g->session, g->conn);
		else if (g->session != NULL)
			/* The grant may have been closed already while its
			 * session ended. */
			session_detach(m, g->session, false, &end);
		grant_free(f, g);
	}
}

static enum channel_end
end_of(const struct session *s)
{
	return s->asked_to_end	   ? CHANNEL_END_ASKED
	       : s->runner.crashed ? CHANNEL_END_CRASHED
				   : CHANNEL_END_RUNNER;
}

static void
tell_ended(
    struct frontend *f, struct grant *g, bool close_asked, const char *reason)
{
	struct control_closed closed = { .conn = g->conn,
		.end = end_of(g->session) };
	struct control_runner_exited exited = { .conn = g->conn };

	snprintf(closed.reason, sizeof(closed.reason), "%s", reason);
	snprintf(exited.reason, sizeof(exited.reason), "%s", reason);
	if (close_asked) {
		grant_free(f, g);
		frontend_send(f, BROKER_ANS_CLOSE, &closed, -1);
		return;
	}
	g->session = NULL;
	g->ended = true;
	g->end = closed.end;
	snprintf(g->reason, sizeof(g->reason), "%s", reason);
	frontend_send(f, BROKER_EV_RUNNER_EXITED, &exited, -1);
}

void
requests_session_ended(struct broker *m, struct session *s, const char *reason)
{
	struct frontend *f = m->frontend;
	struct grant *g = grant_find(f, s->attachment.conn);
	struct watcher *w;

	if (g != NULL && g->session == s && !g->watching)
		tell_ended(f, g, s->attachment.close_asked, reason);
	TAILQ_FOREACH (w, &s->watchers.all, link) {
		g = grant_find(f, w->conn);
		if (g != NULL && g->session == s)
			tell_ended(f, g, w->close_asked, reason);
	}
}
