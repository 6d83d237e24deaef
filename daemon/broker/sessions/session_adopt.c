/* SPDX-License-Identifier: ISC */
/*
 * Sessions of the previous broker. Their runners live, and root has kept the
 * channels to them. Each runner is asked about its session. Root says to whom a
 * session belongs, and not the runner.
 */
#include "base.h"
#include "session_registry.h"

#include "broker_state.h"
#include "conf.h"
#include "siphash.h"
#include "spawn_client.h"
#include "stats.h"

/* How long clients wait for runners to answer. A runner that answers later is
 * adopted later, and until then its client is told to come again
 * (SESSION_SILENT). A runner that never answers is stopped or stuck, and is
 * left alone. */
#define ANSWERS_MS 500

/* The socket of one runner holds fewer reports than this. */
#define EARLY_MAX 4096

/* A report of a runner that came before its answer. Reports keep their
 * order. */
struct early_report {
	STAILQ_ENTRY(early_report) link; /* session.early */
	size_t len;
	uint8_t packet[];
};

static struct identity *
find_identity(const struct broker *m, const struct control_kept *kept)
{
	for (size_t i = 0; i < m->conf->nidentities; i++) {
		struct identity *id = m->conf->identities[i];

		if (id->uid == kept->uid && strcmp(id->name, kept->name) == 0)
			return id;
	}
	return NULL;
}

static void
ask(struct broker *m, struct session *s)
{
	session_send_command(s, RUNNER_COMMAND_IDENTIFY, NULL, NULL, 0);
	m->sessions->unknown++;
}

/* A session belongs to nobody if its identity is no longer in the
 * configuration. */
static void
adopt(struct broker *m, const struct control_kept *kept, int own)
{
	struct registry *r = m->sessions;
	struct identity *id = find_identity(m, kept);
	struct session *s;

	if (id == NULL || own < 0) {
		log_warn(0, "session %.*s: [identity %s] is gone: ending it",
		    ID_LOG_CHARS, kept->session_id, kept->name);
		spawn_kill((pid_t)kept->pid);
	}
	if (id == NULL && own >= 0)
		close(own);
	if (id == NULL || own < 0)
		return;
	s = session_new(id);
	s->state = SESSION_STATE_UNKNOWN;
	STAILQ_INIT(&s->early);
	s->runner.adopted = true;
	s->runner.pid = (pid_t)kept->pid;
	memcpy(s->id, kept->session_id, sizeof(s->id));
	session_name_group(
	    s, &(struct spawn_groups){ kept->group, kept->identity_group });
	table_insert(&r->by_pid, &s->by_pid, (uint64_t)s->runner.pid);
	if (session_control_watch(s, own) < 0) {
		close(own);
		spawn_kill(s->runner.pid);
	}
	ask(m, s);
}

void
session_adopt_all(struct broker *m)
{
	struct control_kept kept;
	uint32_t n = 0;
	int own;

	while (spawn_kept(n, &kept, &own)) {
		adopt(m, &kept, own);
		n++;
	}
	m->sessions->unknown_until_ms = now_ms() + ANSWERS_MS;
	if (n > 0)
		log_info("asking %u runners of the previous broker for their "
			 "sessions",
		    n);
}

static bool
put_off(struct session *s, const uint8_t *packet, size_t len)
{
	struct early_report *e;
	size_t n = 0;

	STAILQ_FOREACH (e, &s->early, link)
		n++;
	if (n == EARLY_MAX)
		return false;
	e = xmalloc(sizeof(*e) + len);
	e->len = len;
	memcpy(e->packet, packet, len);
	STAILQ_INSERT_TAIL(&s->early, e, link);
	return true;
}

static void
drop_early(struct early_reports *early)
{
	struct early_report *e;

	while ((e = STAILQ_FIRST(early)) != NULL) {
		STAILQ_REMOVE_HEAD(early, link);
		free(e);
	}
}

static void
take_early(struct session *s, struct early_reports *early)
{
	struct early_report *e;

	while (!s->runner.hung_up && (e = STAILQ_FIRST(early)) != NULL) {
		STAILQ_REMOVE_HEAD(early, link);
		session_take_report(s, e->packet, e->len);
		free(e);
	}
	drop_early(early);
}

void
session_adopt_forget(struct registry *r, struct session *s)
{
	r->unknown--;
	drop_early(&s->early);
}

/* This broker cannot speak with the runner. The runner is left alone, and its
 * commands go on: a broker of its version can take over the session. */
static void
leave_alone(
    struct registry *r, struct session *s, const uint8_t *packet, size_t len)
{
	char fault[CONTROL_FAULT_MAX];

	session_adopt_forget(r, s);
	s->state = SESSION_STATE_FOREIGN;
	log_error(0, "session %.*s: runner %d: %s; it is left alone",
	    ID_LOG_CHARS, s->id, (int)s->runner.pid,
	    control_fault(packet, len, fault));
}

/* The session's connection ended with the front-end of the previous broker. */
static void
begin_again(struct broker *m, struct session *s,
    const struct control_identity *i, int64_t now)
{
	s->attachment.generation = s->attachment.reported = i->generation;
	s->watchers.ever = i->watches;
	s->runner.recordings = i->recordings;
	s->runner.audited = i->audited;
	s->attachment.empty = i->empty;
	memcpy(s->attachment.peer, i->peer, sizeof(s->attachment.peer));
	s->state = SESSION_STATE_DETACHED;
	s->attachment.end = CHANNEL_END_DETACHED;
	s->detached_ms = now;
	session_limit_detached(m, s);
	table_insert(&m->sessions->by_id, &s->by_id,
	    siphash_bytes(s->id, strlen(s->id)));
	s->opened_ms = now - (int64_t)i->age_ms;
	session_limit_time(s, s->opened_ms);
}

/* What the session may do from now on, by the configuration of this broker. */
static void
tell_limits(struct broker *m, struct session *s)
{
	struct sandbox_limits limits;

	conf_sandbox_limits(m->conf, s->identity, &limits);
	if (s->runner.version >= RUNNER_LIMITS)
		session_send_command(
		    s, RUNNER_COMMAND_SANDBOX, &limits, NULL, 0);
	else
		log_warn(0,
		    "session %.*s: its runner is of an older release, and "
		    "learns of nothing that a reload changes",
		    ID_LOG_CHARS, s->id);
}

static void
settle(struct broker *m, struct session *s, const struct control_identity *i)
{
	struct control_audit_state works = { .works = !m->audit_stopped };
	struct early_reports early = STAILQ_HEAD_INITIALIZER(early);
	bool spare = i->generation == 0;

	m->sessions->unknown--;
	/* The session is no longer UNKNOWN, so it cannot keep these reports. */
	STAILQ_CONCAT(&early, &s->early);
	if (spare || session_of_id(m->sessions, s->id) != NULL) {
		drop_early(&early);
		s->state = SESSION_STATE_SPARE;
		spawn_kill(s->runner.pid);
		return;
	}
	begin_again(m, s, i, now_ms());
	identity_usage_adopt(m, s);
	tell_limits(m, s);
	if (s->runner.audited)
		session_send_command(
		    s, RUNNER_COMMAND_AUDIT_STATE, &works, NULL, 0);
	session_audit(m, s, "session-adopted", NULL, NULL);
	log_info("session %.*s: adopted, of %s, runner %d", ID_LOG_CHARS, s->id,
	    s->identity->name, (int)s->runner.pid);
	take_early(s, &early);
	if (i->terminating)
		session_terminate(m, s);
	m->on->session_adopted(m, s);
}

bool
session_adopt_report(
    struct broker *m, struct session *s, const uint8_t *packet, size_t len)
{
	struct control_identity i;
	int err;

	if (control_peek(packet, len) == RUNNER_EVENT_TOKEN)
		return session_token_take(s, packet, len);
	if (control_peek(packet, len) != RUNNER_EVENT_IDENTITY)
		return put_off(s, packet, len);
	err = control_get(packet, len, RUNNER_EVENT_IDENTITY, &i);
	if (err == -EPROTO) {
		leave_alone(m->sessions, s, packet, len);
		return true;
	}
	if (err < 0 || i.age_ms > INT64_MAX / 2)
		return false;
	s->runner.version = control_version(packet, len);
	settle(m, s, &i);
	return true;
}

int
session_adopt_again(struct session *s, const union runner_report *r)
{
	return s->runner.adopted &&
		       r->identity.generation <= s->attachment.generation
		   ? 0
		   : -EBADMSG;
}

bool
session_adopt_waits(struct broker *m, int64_t now)
{
	const struct registry *r = m->sessions;
	bool waits = r->unknown > 0 && now < r->unknown_until_ms;

	if (waits)
		watch_turn_at(r->unknown_until_ms);
	return waits;
}
