/* SPDX-License-Identifier: ISC */
/*
 * Sessions whose runner ended a channel without a report. Usually the runner is
 * dying and is reaped in a moment. A runner that lives on is faulty, and its
 * client waits to be told, so the runner is killed.
 */

#include "broker_state.h"
#include "log.h"
#include "queue.h"
#include "session_registry.h"
#include "spawn_client.h"
#include "util.h"

/* A dying runner is reaped sooner than this. */
#define MISSING_REPORT_MS 2000

void
session_note_missing(struct registry *r, struct session *s)
{
	if (s->runner.silent_ms != 0)
		return;
	s->runner.silent_ms = now_ms() + MISSING_REPORT_MS;
	TAILQ_INSERT_TAIL(&r->silent, s, runner.silent_link);
}

void
session_forget_missing(struct registry *r, struct session *s)
{
	if (s->runner.silent_ms > 0)
		TAILQ_REMOVE(&r->silent, s, runner.silent_link);
	s->runner.silent_ms = -1;
}

int64_t
session_missing_expire(struct registry *r, int64_t now)
{
	struct session *s;

	while ((s = TAILQ_FIRST(&r->silent)) != NULL) {
		if (s->runner.silent_ms > now)
			return s->runner.silent_ms;
		log_error(0,
		    "session %.*s: its runner ended a channel without a "
		    "report: killing it",
		    ID_LOG_CHARS, s->id);
		spawn_kill(s->runner.pid);
		session_forget_missing(r, s);
	}
	return -1;
}
