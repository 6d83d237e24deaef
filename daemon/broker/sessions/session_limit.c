/* SPDX-License-Identifier: ISC */
/*
 * How many sessions an identity may have, for how long, and when execd ends
 * because nobody has had one for a while.
 */
#include "base.h"
#include "session_registry.h"

#include <sys/resource.h>

#include "broker_state.h"
#include "conf.h"
#include "frontend_child.h"

/* Descriptors of listeners, the loop, the front-end and its helpers, and of
 * socket pairs that are being passed on. */
#define OWN_DESCRIPTORS 96

/* A session takes two descriptors: its runner's control channel, and
 * the list of what its sandboxes made on the disk. A list that arrives
 * when no descriptor is free would be lost, so the last ones are not
 * given to sessions. */
#define SESSION_DESCRIPTORS 2

uint64_t
session_limit_wanted(uint32_t sessions)
{
	return OWN_DESCRIPTORS + SESSION_DESCRIPTORS * (uint64_t)sessions;
}

uint32_t
session_limit_descriptors(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur <= OWN_DESCRIPTORS)
		return 0;
	if (r.rlim_cur > UINT32_MAX)
		return UINT32_MAX;
	return (uint32_t)((r.rlim_cur - OWN_DESCRIPTORS) / SESSION_DESCRIPTORS);
}

static uint32_t
count_sessions(const struct broker *m, const struct identity *identity)
{
	const struct session *s;
	uint32_t n = 0;

	TABLE_FOREACH (s, &m->sessions->by_id, by_id)
		n += identity_is(identity, s->identity);
	return n;
}

size_t
session_limit_places(const struct broker *m)
{
	uint32_t configured = m->conf->limits.max_sessions;
	uint32_t possible = session_limit_descriptors();

	return configured < possible ? configured : possible;
}

/*
 * Each of several identities has an equal part of all places for itself. It may
 * have more while more places are free than it holds, so that the next identity
 * finds some.
 */
static size_t
permitted_of(const struct broker *m, size_t all, size_t used)
{
	size_t part =
	    m->conf->nidentities > 1 ? all / m->conf->nidentities : all;
	size_t free_places = all > used ? all - used : 0;
	size_t permitted = part > free_places ? part : free_places;

	return permitted > 0 ? permitted : 1;
}

static bool
is_fair(const struct broker *m, const struct identity *identity)
{
	size_t used = m->sessions->by_id.count;
	size_t permitted = permitted_of(m, session_limit_places(m), used);

	/* Counting takes time, so it is done only where it can matter. */
	return used < permitted || count_sessions(m, identity) < permitted;
}

bool
session_limit_room(
    const struct broker *m, const struct identity *identity, char *reason)
{
	uint32_t all = m->conf->limits.max_sessions;
	uint32_t own = identity->limits.max_sessions;

	if (m->sessions->by_id.count >= all) {
		snprintf(reason, 256, "limit of %u sessions reached", all);
		return false;
	}
	if (m->sessions->by_id.count >= session_limit_descriptors()) {
		snprintf(reason, 256,
		    "execd has descriptors for %u sessions only",
		    session_limit_descriptors());
		return false;
	}
	if (own == 0 && is_fair(m, identity))
		return true;
	if (own == 0)
		snprintf(reason, 256,
		    "%.100s has its share of the %zu possible sessions; "
		    "max-sessions of the identity sets another limit",
		    identity->name, session_limit_places(m));
	else if (count_sessions(m, identity) < own)
		return true;
	else
		snprintf(reason, 256, "limit of %u sessions of %.100s reached",
		    own, identity->name);
	return false;
}

bool
session_limit_keeps(
    const struct broker *m, const struct identity *identity, size_t *kept)
{
	const struct session *s;

	*kept = 0;
	TABLE_FOREACH (s, &m->sessions->by_id, by_id)
		*kept +=
		    identity_is(identity, s->identity) && session_is_kept(s);
	return *kept <
	       permitted_of(m, session_keep_places(m), m->sessions->nkept);
}

/* Tells whether less than half of the identity's possible places are left. */
static bool
is_scarce(const struct broker *m, const struct identity *identity)
{
	uint32_t own = identity->limits.max_sessions;

	return m->sessions->by_id.count > session_limit_places(m) / 2 ||
	       (own > 0 && count_sessions(m, identity) > own / 2);
}

void
session_limit_end_empty(struct broker *m, struct session *s)
{
	if (s->state != SESSION_STATE_DETACHED || !s->attachment.empty ||
	    session_is_kept(s) || !is_scarce(m, s->identity))
		return;
	session_end_reason(
	    s, "nothing was started in it, and its place is needed");
	if (session_may_log(s))
		log_info("session %.*s: %s, ending it", ID_LOG_CHARS, s->id,
		    s->end_reason);
	session_terminate(m, s);
}

static void
reach_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	if (s->state == SESSION_STATE_TERMINATING)
		return;
	log_info("session %.*s: session-deadline of %u ms reached, ending it",
	    ID_LOG_CHARS, s->id, s->identity->limits.session_deadline_ms);
	session_end_reason(s, "its session-deadline was reached");
	session_terminate(&broker, s);
}

void
session_limit_time(struct session *s, int64_t opened_ms)
{
	if (s->identity->limits.session_deadline_ms == 0)
		return;
	s->ends_ms = opened_ms + s->identity->limits.session_deadline_ms;
	watch_time(&s->end_timer, s->ends_ms - now_ms(), reach_deadline, s);
}

/* A network that fails detaches many sessions at one moment. If all of them
 * ended at once, working clients would wait. */
#define ENDS_APART_MS 3

static void
end_detached(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	if (session_is_kept(s)) {
		session_keep_over(&broker, s);
		return;
	}
	if (session_may_log(s))
		log_info("session %.*s: not resumed within %u ms, ending it",
		    ID_LOG_CHARS, s->id, broker.conf->limits.detached_ttl_ms);
	session_terminate(&broker, s);
}

void
session_limit_detached(struct broker *m, struct session *s)
{
	int64_t *last = &m->sessions->last_end;

	if (session_is_kept(s)) {
		s->until_ms = session_keep_end(m, s);
	} else {
		s->until_ms = s->detached_ms + m->conf->limits.detached_ttl_ms;
		if (s->until_ms < *last + ENDS_APART_MS)
			s->until_ms = *last + ENDS_APART_MS;
		*last = s->until_ms;
	}
	watch_time(&s->timer, s->until_ms - now_ms(), end_detached, s);
}

/*
 * exit-when-idle. Only the front-end knows of clients that are not let in yet,
 * so it has the last word: it accepts everybody who waits, and says DONE only
 * if it has no connection then. Its door stays open. Who comes behind that is
 * told that the server is shutting down.
 */

#define ASK_AGAIN_MS 1000

/* An adopted runner may have a session that has no id yet. */
static bool
has_session(const struct broker *m)
{
	const struct session *s;

	if (m->sessions->by_id.count > 0)
		return true;
	TABLE_FOREACH (s, &m->sessions->by_pid, by_pid)
		if (s->state != SESSION_STATE_SPARE)
			return true;
	return false;
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
