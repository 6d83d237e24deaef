/* SPDX-License-Identifier: ISC */
/*
 * Kept sessions: those whose clients asked that they outlive detached-ttl.
 * Their runners ask for it, and tell it to the next broker.
 */
#include "base.h"
#include "session_registry.h"

#include "broker_state.h"
#include "conf.h"

uint32_t
session_keep_places(const struct broker *m)
{
	const struct limits *l = &m->conf->limits;

	return l->max_kept_sessions == SANDBOX_UNSET_COUNT
		   ? (l->max_sessions - 1) / 4 + 1
		   : l->max_kept_sessions;
}

bool
session_is_kept(const struct session *s)
{
	return s->keep.max_ms > 0;
}

/* --- when it ends --------------------------------------------------------- */

/* Never sooner than a session that nobody asked to keep. */
int64_t
session_keep_end(const struct broker *m, const struct session *s)
{
	uint32_t detached_ttl_ms = m->conf->limits.detached_ttl_ms;
	const struct keep *k = &s->keep;
	int64_t most = s->detached_ms + k->max_ms;
	int64_t from =
	    k->idle_ms > s->detached_ms ? k->idle_ms : s->detached_ms;
	int64_t until = k->running ? most : from + k->ms;

	if (until > most)
		until = most;
	return until > from + detached_ttl_ms ? until : from + detached_ttl_ms;
}

void
session_keep_over(struct broker *m, struct session *s)
{
	char reason[64];

	snprintf(reason, sizeof(reason), "kept for %lld s without a client",
	    (long long)(now_ms() - s->detached_ms) / 1000);
	if (session_may_log(s))
		log_info(
		    "session %.*s: %s, ending it", ID_LOG_CHARS, s->id, reason);
	session_end_reason(s, reason);
	session_ended_note(s);
	session_terminate(m, s);
}

/* --- what runners ask and tell -------------------------------------------- */

/* Replaces what is known of it. A session that is detached moves to where its
 * end is now. */
static void
set(struct broker *m, struct session *s, const struct keep *keep)
{
	struct registry *r = m->sessions;
	bool waits = s->state == SESSION_STATE_DETACHED;

	r->nkept -= session_is_kept(s);
	s->keep = *keep;
	r->nkept += session_is_kept(s);
	if (waits && !session_is_kept(s))
		s->detached_ms = now_ms();
	if (waits)
		session_limit_detached(m, s);
}

/* Tells whether the session may be kept. If not, reason[256] says why. */
static bool
is_permitted(const struct broker *m, const struct session *s, char *reason)
{
	const struct registry *r = m->sessions;
	uint32_t most = session_keep_places(m);
	size_t own;

	reason[0] = '\0';
	if (m->stdio)
		snprintf(reason, 256, "this server ends with its client");
	else if (s->identity->limits.max_detached_ttl_ms == 0)
		snprintf(reason, 256,
		    "no session is kept: max-detached-ttl = none of identity "
		    "%.100s",
		    s->identity->name);
	else if (!session_is_kept(s) && r->nkept >= most)
		snprintf(reason, 256,
		    "%zu sessions are kept, and no more can be: "
		    "max-kept-sessions = %u of [limits]",
		    r->nkept, most);
	else if (!session_is_kept(s) &&
		 !session_limit_keeps(m, s->identity, &own))
		snprintf(reason, 256,
		    "%zu sessions of %.100s are kept, its share: "
		    "max-kept-sessions = %u of [limits]",
		    own, s->identity->name, most);
	return reason[0] == '\0';
}

/* Beyond its session-deadline nothing is promised. */
static uint32_t
most_of(const struct session *s)
{
	uint32_t most = s->identity->limits.max_detached_ttl_ms;
	int64_t left = s->ends_ms - now_ms();

	if (s->ends_ms == 0 || left >= most)
		return most;
	return left > 1 ? (uint32_t)left : 1;
}

static void
grant(const struct broker *m, const struct session *s,
    const struct control_keep_wanted *wanted, struct control_keep *answer)
{
	uint32_t least = m->conf->limits.detached_ttl_ms;

	answer->max_ms = most_of(s);
	answer->ms = wanted->ms < answer->max_ms ? wanted->ms : answer->max_ms;
	if (answer->ms < least)
		answer->ms = least;
}

static void
tell(struct broker *m, const struct session *s,
    const struct control_keep_wanted *wanted, const struct control_keep *answer)
{
	char text[512];

	if (answer->reason[0] != '\0')
		snprintf(text, sizeof(text), "%s", answer->reason);
	else if (!wanted->keep)
		snprintf(text, sizeof(text), "no longer than others");
	else
		snprintf(text, sizeof(text), "for %u s, at most %u s",
		    answer->ms / 1000, answer->max_ms / 1000);
	session_audit(m, s,
	    answer->reason[0] != '\0' ? "session-not-kept" : "session-kept",
	    NULL, text);
	if (session_may_log(s))
		log_info("session %.*s: %s without a client: %s", ID_LOG_CHARS,
		    s->id, answer->reason[0] != '\0' ? "not kept" : "kept",
		    text);
}

int
session_keep_report(struct session *s, const union runner_report *r)
{
	const struct control_keep_wanted *wanted = &r->keep;
	struct control_keep answer = { .number = wanted->number };
	struct keep keep = { 0 };

	if (wanted->keep && is_permitted(&broker, s, answer.reason))
		grant(&broker, s, wanted, &answer);
	tell(&broker, s, wanted, &answer);
	if (answer.reason[0] == '\0') {
		keep.max_ms = answer.max_ms;
		keep.ms = answer.ms;
		keep.running = wanted->running;
		set(&broker, s, &keep);
	}
	session_send_command(s, RUNNER_COMMAND_KEEP, &answer, NULL, 0);
	return 0;
}

/* An earlier broker granted it, and a reload that lowers a limit ends nothing
 * before its time. A runner that was taken over could lie here of its own
 * session, within CONTROL_KEEP_MAX_MS. */
int
session_kept_report(struct session *s, const union runner_report *r)
{
	const struct control_keep_state *k = &r->kept;
	struct keep keep = s->keep;
	int64_t now = now_ms();

	if ((!session_is_kept(s) && !s->runner.adopted) || k->max_ms == 0 ||
	    k->max_ms > CONTROL_KEEP_MAX_MS || k->since_ms > INT64_MAX / 2 ||
	    k->detached_ms > CONTROL_KEEP_MAX_MS)
		return -EBADMSG;
	if (!session_is_kept(s)) {
		keep.max_ms = k->max_ms;
		keep.ms = k->ms;
		if (s->state == SESSION_STATE_DETACHED)
			s->detached_ms = now - (int64_t)k->detached_ms;
	}
	keep.running = k->running;
	keep.idle_ms = now - (int64_t)k->since_ms;
	set(&broker, s, &keep);
	return 0;
}
