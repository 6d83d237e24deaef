/* SPDX-License-Identifier: ISC */
/*
 * The session registry. It takes the reports DETACHED and UNWATCHED. Any other
 * report ends the runner and its session.
 */
#include "session_registry.h"

#include <assert.h>

#include "broker_state.h"
#include "conf.h"
#include "frontend_child.h"
#include "log_limit.h"
#include "siphash.h"
#include "spawn_client.h"
#include "stats.h"

/* A runner that was told to end has its own grace time plus this. */
#define KILL_MARGIN_MS 2000

/* The time that the front-end has to tell its clients. A runner may have to
 * give a client back first. */
#define LEAVING_MS 300

static void session_forget_watchers(struct session *s);

static bool
match_id(const struct table_node *node, const void *key)
{
	return !strcmp(
	    TABLE_OBJECT(node, const struct session, by_id)->id, key);
}

static bool
match_pid(const struct table_node *node, const void *key)
{
	return TABLE_OBJECT(node, const struct session, by_pid)->runner.pid ==
	       *(const pid_t *)key;
}

struct session *
session_of_id(const struct registry *r, const char *id)
{
	struct table_node *node =
	    table_find(&r->by_id, siphash_bytes(id, strlen(id)), match_id, id);

	return node ? TABLE_OBJECT(node, struct session, by_id) : NULL;
}

/* Returns why the identity has no such session: SESSION_SILENT if the runner
 * has not answered yet, else SESSION_UNKNOWN. */
static enum session_result
session_missing_result(
    const struct registry *r, const struct identity *identity, const char *id)
{
	const struct session *s;

	if (r->unknown > 0)
		TABLE_FOREACH (s, &r->by_pid, by_pid)
			if (s->state == SESSION_STATE_UNKNOWN &&
			    strcmp(s->id, id) == 0 &&
			    identity_is(s->identity, identity))
				return SESSION_SILENT;
	return SESSION_UNKNOWN;
}

static struct session *
find_by_pid(const struct registry *r, pid_t pid)
{
	struct table_node *node =
	    table_find(&r->by_pid, (uint64_t)pid, match_pid, &pid);

	return node ? TABLE_OBJECT(node, struct session, by_pid) : NULL;
}

static int
attach(
    struct session *s, uint32_t conn, const struct origin *from, int channel_fd)
{
	enum control_type type =
	    from->proxy[0] != '\0' && s->runner.version >= RUNNER_PROBES
		? RUNNER_COMMAND_ATTACH_PROXIED
		: RUNNER_COMMAND_ATTACH;
	struct control_attach attach = { .generation =
					     ++s->attachment.generation };
	int err;

	snprintf(attach.peer, sizeof(attach.peer), "%s", from->peer);
	err = session_send_command(s, type, &attach, &channel_fd, 1);
	if (err < 0)
		return err;
	s->attachment.conn = conn;
	memcpy(s->attachment.peer, attach.peer, sizeof(s->attachment.peer));
	s->attachment.close_asked = false;
	s->attachment.empty = false;
	s->attachment.end = CHANNEL_END_DETACHED;
	s->state = SESSION_STATE_ATTACHED;
	return 0;
}

/* Tells whether the session has an id that a client may know. */
static bool
is_listed(const struct session *s)
{
	return s->state != SESSION_STATE_SPARE &&
	       s->state != SESSION_STATE_UNKNOWN &&
	       s->state != SESSION_STATE_FOREIGN;
}

static void
destroy(struct registry *r, struct session *s)
{
	watch_end(&s->timer);
	watch_end(&s->end_timer);
	watch_end(&s->runner.silent_timer);
	r->nkept -= session_is_kept(s);
	r->owing -= s->runner.asked_ms > 0;
	if (s->state == SESSION_STATE_UNKNOWN)
		session_adopt_forget(r, s);
	else if (is_listed(s))
		table_remove(&r->by_id, &s->by_id);
	if (s->runner.pid > 0)
		table_remove(&r->by_pid, &s->by_pid);
	dispose_channel(watch_end(&s->runner.control));
	session_forget_watchers(s);
	identity_unref(s->identity);
	free(s->bearer);
	free(s->commands.shown);
	free(s->end_reason);
	free(s);
}

void
session_discard(struct registry *r, struct session *s)
{
	dispose_channel(watch_end(&s->runner.control));
	/* The rest is freed when the runner is reaped. */
	if (s->runner.pid > 0)
		spawn_kill(s->runner.pid);
	else
		destroy(r, s);
}

/* The session is recorded before it runs. */
static int
start(struct broker *m, struct session *s, const struct origin *from,
    char *reason)
{
	int err = session_audit(m, s, "session-opened", from, NULL);

	if (err < 0) {
		snprintf(reason, 256, "the audit log cannot be written");
		return err;
	}
	if (s->runner.pid > 0)
		return 0; /* the spare runner is used */
	err = session_start(m, s, reason);
	if (err < 0)
		session_audit(m, s, "session-ended", NULL, reason);
	return err;
}

bool
session_may_log(const struct session *s)
{
	return log_permits(LOG_SESSION, s->identity->name, "session");
}

enum session_result
session_open(struct broker *m, struct identity *identity, uint32_t conn,
    struct origin from, struct session **session, int channel_fd, char *reason)
{
	struct registry *r = m->sessions;
	struct session *s;
	int err;

	if (!session_limit_room(m, identity, reason))
		return SESSION_LIMIT;
	s = session_spare_take(m, identity);
	if (s == NULL)
		s = session_new(identity);
	if (start(m, s, &from, reason) < 0) {
		if (log_permits(LOG_DECISION, identity->name, reason))
			log_error(
			    0, "no session for %s: %s", identity->name, reason);
		session_discard(r, s);
		return SESSION_FAILED;
	}
	s->opened_ms = now_ms();
	session_limit_time(s, s->opened_ms);
	table_insert(&r->by_id, &s->by_id, siphash_bytes(s->id, strlen(s->id)));
	/* Whatever happens, the session is no longer SPARE. */
	s->state = SESSION_STATE_ATTACHED;
	/* The line is written before the client can know of the session. */
	if (session_may_log(s))
		log_info("session %.*s: opened for %s, %s, runner %d",
		    ID_LOG_CHARS, s->id, identity->name, from.peer,
		    (int)s->runner.pid);
	err = attach(s, conn, &from, channel_fd);
	if (err < 0) {
		snprintf(reason, 256, "session channel: %s", strerror(-err));
		session_terminate(m, s);
		return SESSION_FAILED;
	}
	session_spare_want(m, identity);
	*session = s;
	return SESSION_OK;
}

/* Returns the session of that id if it can be reached and belongs to the
 * identity, or NULL. */
static struct session *
find_reachable(
    struct broker *m, const struct identity *identity, const char *id)
{
	struct session *s = session_of_id(m->sessions, id);

	return s == NULL || !identity_is(s->identity, identity) ||
		       s->runner.hung_up || s->state == SESSION_STATE_LEAVING ||
		       s->state == SESSION_STATE_TERMINATING
		   ? NULL
		   : s;
}

static void
note_resumed(
    struct broker *m, const struct session *s, const struct origin *from)
{
	char taken[CONTROL_PEER_MAX + 32] = "";

	if (s->state == SESSION_STATE_ATTACHED)
		snprintf(taken, sizeof(taken), "taken over from %s",
		    s->attachment.peer);
	session_audit(
	    m, s, "session-resumed", from, taken[0] != '\0' ? taken : NULL);
	if (session_may_log(s))
		log_info("session %.*s: resumed, %s%s%s", ID_LOG_CHARS, s->id,
		    from->peer, taken[0] != '\0' ? ", " : "", taken);
}

enum session_result
session_resume(struct broker *m, const struct identity *identity,
    const char *id, uint32_t conn, struct origin from, bool take_over,
    struct session **session, int channel_fd)
{
	struct session *s = find_reachable(m, identity, id);

	if (s == NULL)
		return session_missing_result(m->sessions, identity, id);
	/* A connection whose CLOSE is not answered yet is ending anyway. */
	if (s->state == SESSION_STATE_ATTACHED &&
	    (!take_over || s->attachment.close_asked))
		return SESSION_ATTACHED;
	note_resumed(m, s, &from);
	watch_end(&s->timer);
	if (attach(s, conn, &from, channel_fd) < 0) {
		s->state = SESSION_STATE_ATTACHED;
		session_terminate(m, s);
		return SESSION_UNKNOWN;
	}
	*session = s;
	return SESSION_OK;
}

bool
session_detach(struct broker *m, struct session *s, bool channel_ended,
    enum channel_end *end)
{
	session_take_reports(s);
	/* A runner reports its reason before it hangs up. A runner without a
	 * report is dying: the kernel closes its descriptors in any order. */
	if (s->runner.hung_up ||
	    (channel_ended &&
		s->attachment.reported != s->attachment.generation)) {
		s->attachment.close_asked = true;
		session_note_missing(s);
		return false;
	}
	*end = s->attachment.end;
	if (s->state != SESSION_STATE_ATTACHED)
		return true;
	session_send_command(s, RUNNER_COMMAND_DETACH, NULL, NULL, 0);
	s->state = SESSION_STATE_DETACHED;
	s->detached_ms = now_ms();
	session_limit_detached(m, s);
	session_audit(m, s, "session-detached", NULL, NULL);
	if (session_may_log(s))
		log_info("session %.*s: detached", ID_LOG_CHARS, s->id);
	session_limit_end_empty(m, s);
	return true;
}

void
session_end_reason(struct session *s, const char *reason)
{
	if (s->end_reason == NULL)
		s->end_reason = xstrdup(reason);
}

static void
kill_late(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	log_warn(0, "session %.*s: runner did not end in time, killed",
	    ID_LOG_CHARS, s->id);
	spawn_kill(s->runner.pid);
	watch_time(&s->timer, KILL_MARGIN_MS, kill_late, s);
}

void
session_terminate(struct broker *m, struct session *s)
{
	if (s->state == SESSION_STATE_TERMINATING)
		return;
	s->state = SESSION_STATE_TERMINATING;
	watch_time(&s->timer, m->conf->limits.kill_grace_ms + KILL_MARGIN_MS,
	    kill_late, s);
	if (!s->runner.hung_up)
		session_send_command(
		    s, RUNNER_COMMAND_TERMINATE, NULL, NULL, 0);
}

static void
clients_were_told(evutil_socket_t fd, short what, void *arg)
{
	session_terminate(&broker, arg);
}

void
session_dismiss(struct broker *m, struct session *s)
{
	struct control_runner_exited end = { .conn = s->attachment.conn };
	const struct watcher *w;

	snprintf(end.reason, sizeof(end.reason), "%s",
	    s->end_reason ? s->end_reason : "it is over");
	if (s->state == SESSION_STATE_ATTACHED)
		frontend_send(m->frontend, BROKER_EV_END, &end, -1);
	TAILQ_FOREACH (w, &s->watchers.all, link) {
		end.conn = w->conn;
		frontend_send(m->frontend, BROKER_EV_END, &end, -1);
	}
	s->state = SESSION_STATE_LEAVING;
	watch_time(&s->timer, LEAVING_MS, clients_were_told, s);
}

void
session_terminate_all(struct broker *m, const char *reason)
{
	struct session *s;

	/* Runners that this broker cannot speak with are killed. */
	TABLE_FOREACH (s, &m->sessions->by_pid, by_pid)
		if (s->state == SESSION_STATE_UNKNOWN ||
		    s->state == SESSION_STATE_FOREIGN)
			spawn_kill(s->runner.pid);
	TABLE_FOREACH (s, &m->sessions->by_id, by_id) {
		session_end_reason(s, reason);
		session_terminate(m, s);
	}
}

/* A fault of the runner itself. Whoever caused it may try again. */
static bool
is_crash(int status)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT,
		SIGSYS, SIGTRAP };

	for (size_t i = 0; WIFSIGNALED(status) && i < nitems(faults); i++)
		if (WTERMSIG(status) == faults[i])
			return true;
	return false;
}

static void
describe_status(int status, char reason[256])
{
	if (WIFSIGNALED(status))
		snprintf(reason, 256, "runner killed by signal %d",
		    WTERMSIG(status));
	else
		snprintf(reason, 256, "runner exited with status %d",
		    WEXITSTATUS(status));
}

void
session_reap(struct broker *m, pid_t pid, int status)
{
	struct session *s = find_by_pid(m->sessions, pid);
	char reason[256];

	if (s == NULL)
		return;
	if (s->state == SESSION_STATE_SPARE)
		session_spare_reaped(m, s);
	if (!is_listed(s)) {
		destroy(m->sessions, s);
		return;
	}
	if (s->end_reason != NULL)
		snprintf(reason, sizeof(reason), "%s", s->end_reason);
	else
		describe_status(status, reason);
	if (s->state != SESSION_STATE_TERMINATING)
		log_error(0, "session %.*s: %s; its processes are killed",
		    ID_LOG_CHARS, s->id, reason);
	else if (session_may_log(s))
		log_info("session %.*s: ended", ID_LOG_CHARS, s->id);
	identity_usage_end(m, s);
	session_audit_processes_ended(m, s);
	session_audit(m, s, "session-ended", NULL, reason);
	s->runner.crashed = is_crash(status);
	s->runner.hung_up = true;
	if (s->probe.number != 0)
		m->on->session_probed(m, s);
	m->on->session_ended(m, s, reason);
	/* A new runner removes what a killed one left (placeholder.h). */
	if (status != 0) {
		session_spare_drop(m, s->identity);
		session_spare_want(m, s->identity);
	}
	destroy(m->sessions, s);
}

/* --- sessions that the operator ended ----------------------------------- */

static struct ended {
	char id[CONTROL_SESSION_ID_MAX]; /* "": not used yet */
	struct identity *identity;	 /* a reference */
	char reason[256];
} ended[SESSION_ENDED_MAX];
static size_t next;

void
session_ended_note(const struct session *s)
{
	struct ended *e = &ended[next++ % SESSION_ENDED_MAX];

	if (e->identity != NULL)
		identity_unref(e->identity);
	e->identity = identity_ref(s->identity);
	memcpy(e->id, s->id, sizeof(e->id));
	snprintf(e->reason, sizeof(e->reason), "%s",
	    s->end_reason ? s->end_reason : "ended");
}

const char *
session_ended_reason(const struct identity *identity, const char *id)
{
	for (size_t i = 0; i < SESSION_ENDED_MAX; i++)
		if (ended[i].id[0] != '\0' && strcmp(ended[i].id, id) == 0 &&
		    identity_is(ended[i].identity, identity))
			return ended[i].reason;
	return NULL;
}

/*
 * Connections that watch a session, beside the one that is attached to it. They
 * have channels of their own to the runner, and the runner knows what they may
 * ask. This file only knows who they are and how they end.
 */

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
	struct session *s = find_reachable(m, identity, id);
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
	/* The audit log has the watcher before the client is told. */
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

static void
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
		session_note_missing(s);
		return false;
	}
	*end = w->end;
	forget(s, w);
	return true;
}
