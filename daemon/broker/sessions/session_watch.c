/* SPDX-License-Identifier: ISC */
/*
 * Connections that watch a session, beside the one that is attached to it. They
 * have channels of their own to the runner, and the runner knows what they may
 * ask. This file only knows who they are and how they end.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "broker_state.h"
#include "log.h"
#include "session_audit.h"
#include "session_registry.h"
#include "util.h"

static int
watch(struct session *s, const char *peer, int channel_fd)
{
	struct control_watch command = { .number = ++s->watchers.ever };

	snprintf(command.peer, sizeof(command.peer), "%s", peer);
	return session_send_command(
	    s, RUNNER_COMMAND_WATCH, &command, &channel_fd, 1);
}

enum session_result
session_watch(struct broker *m, const struct identity *identity, const char *id,
    uint32_t conn, struct origin from, struct session **session, int channel_fd,
    char *reason)
{
	struct session *s = session_find(m, identity, id);
	struct watcher *w;
	int err;

	if (s == NULL)
		return session_missing_result(m->sessions, identity, id);
	if (s->watchers.count >= SESSION_WATCHERS_MAX) {
		snprintf(reason, 256,
		    "at most %d connections may watch a session",
		    SESSION_WATCHERS_MAX);
		return SESSION_LIMIT;
	}
	/* It is recorded before the client can know of it. */
	session_audit(m, s, "session-watched", &from, NULL);
	log_info("session %.*s: watched, %s", ID_LOG_CHARS, s->id, from.peer);
	err = watch(s, from.peer, channel_fd);
	if (err < 0) {
		snprintf(reason, 256, "session channel: %s", strerror(-err));
		return SESSION_FAILED;
	}
	w = xcalloc(1, sizeof(*w));
	w->conn = conn;
	w->number = s->watchers.ever;
	w->end = CHANNEL_END_DETACHED;
	TAILQ_INSERT_TAIL(&s->watchers.all, w, link);
	s->watchers.count++;
	*session = s;
	return SESSION_OK;
}

static void
forget(struct session *s, struct watcher *w)
{
	TAILQ_REMOVE(&s->watchers.all, w, link);
	s->watchers.count--;
	free(w);
}

void
session_forget_watcher(struct session *s, uint32_t conn)
{
	struct watcher *w = session_watcher(s, conn);

	if (w != NULL)
		forget(s, w);
}

void
session_forget_watchers(struct session *s)
{
	while (!TAILQ_EMPTY(&s->watchers.all))
		forget(s, TAILQ_FIRST(&s->watchers.all));
}

struct watcher *
session_watcher(struct session *s, uint32_t conn)
{
	struct watcher *w;

	TAILQ_FOREACH (w, &s->watchers.all, link)
		if (w->conn == conn)
			return w;
	return NULL;
}

bool
session_watch_ended(struct session *s, uint32_t number, enum channel_end end)
{
	struct watcher *w;

	TAILQ_FOREACH (w, &s->watchers.all, link)
		if (w->number == number) {
			w->reported = true;
			w->end = end;
		}
	/* The runner may report a watcher that was forgotten here. */
	return number > 0 && number <= s->watchers.ever;
}

bool
session_unwatch(struct broker *m, struct session *s, uint32_t conn,
    bool channel_ended, enum channel_end *end)
{
	struct watcher *w = session_watcher(s, conn);

	assert(w != NULL);
	session_take_reports(s);
	/* As for an attached client: a runner that hung up without a report is
	 * dying. */
	if (s->runner.hung_up || (channel_ended && !w->reported)) {
		w->close_asked = true;
		session_note_missing(m->sessions, s);
		return false;
	}
	*end = w->end;
	forget(s, w);
	return true;
}
