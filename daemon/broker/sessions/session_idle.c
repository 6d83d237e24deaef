/* SPDX-License-Identifier: ISC */
/*
 * exit-when-idle. Only the front-end knows of clients that are not let in yet,
 * so it has the last word: it accepts everybody who waits, and says DONE only
 * if it has no connection then. Its door stays open. Who comes behind that is
 * told that the server is shutting down.
 */
#include "session_idle.h"

#include <errno.h>

#include "broker_state.h"
#include "conf.h"
#include "frontend_child.h"
#include "log.h"
#include "session_registry.h"
#include "util.h"

#define ASK_AGAIN_MS 1000

static void
count_session(struct table_node *node, void *arg)
{
	const struct session *s = TABLE_OBJECT(node, struct session, by_pid);

	*(size_t *)arg += s->state != SESSION_STATE_SPARE;
}

/* An adopted runner may have a session that has no id yet. */
static bool
has_session(const struct broker *m)
{
	size_t n = m->sessions->by_id.count;

	if (n == 0)
		table_each(&m->sessions->by_pid, count_session, &n);
	return n > 0;
}

int64_t
session_idle_expire(struct broker *m, int64_t now)
{
	struct idle *idle = &m->idle;
	int64_t due;

	if (m->conf->limits.exit_when_idle_ms == 0 || broker_is_going(m))
		return -1;
	if (has_session(m)) {
		*idle = (struct idle){ .since_ms = 0 };
		return -1;
	}
	if (idle->since_ms == 0)
		idle->since_ms = now;
	due = idle->since_ms + m->conf->limits.exit_when_idle_ms;
	if (idle->asked_ms > 0 && due < idle->asked_ms + ASK_AGAIN_MS)
		due = idle->asked_ms + ASK_AGAIN_MS;
	if (now < due)
		return due;
	if (m->frontend->state == FRONTEND_SERVING)
		frontend_send(m->frontend, BROKER_EV_IDLE, NULL, -1);
	idle->asked_ms = now;
	return now + ASK_AGAIN_MS;
}

int
session_idle_confirmed(struct broker *m)
{
	if (m->conf->limits.exit_when_idle_ms == 0)
		return -EPERM;
	/* An answer that comes late belongs to another time without sessions.
	 */
	if (m->idle.asked_ms == 0 || m->stopping || has_session(m))
		return 0;
	log_info("no session for %u ms: stopping",
	    m->conf->limits.exit_when_idle_ms);
	return 1;
}
