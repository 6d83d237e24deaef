/* SPDX-License-Identifier: ISC */
/*
 * The signed and the named tokens of clients that have sessions. A token that
 * has expired may resume the session that it had (doc/protocol.md section 1.5).
 * What is needed for this outlives the broker in the runner. A runner that was
 * taken over can say that its session had another token. It lets nobody into
 * another session by that: root's execd says of which identity its own is.
 */
#include "base.h"
#include "session_registry.h"

#include "broker_state.h"
#include "conf.h"

/* No clock shows it, and what is computed with it is a number. */
#define SINCE_MAX (INT64_MAX / 2)

/* The first version of runners that are told of tokens. */
#define VERSION_WITH_TOKENS 4

/* In place of the digest of an issuer: no text has this one. */
#define NO_ISSUER 0xff

struct control_token
session_token_of(const char *name, int64_t expires_s, int64_t now_s)
{
	struct control_token t = { .there = true,
		.until_s = (uint64_t)(expires_s > 0 ? expires_s : INT64_MAX),
		.since_s = (uint64_t)now_s };

	memset(t.issuer, NO_ISSUER, sizeof(t.issuer));
	snprintf(t.subject, sizeof(t.subject), "%s", name);
	return t;
}

bool
session_token_is_named(const struct control_token *t)
{
	for (size_t i = 0; i < sizeof(t->issuer); i++)
		if (t->issuer[i] != NO_ISSUER)
			return false;
	return t->there;
}

const char *
session_token_name(const struct session *s)
{
	return s->bearer != NULL && session_token_is_named(s->bearer)
		   ? s->bearer->subject
		   : NULL;
}

static bool
has_same_owner(const struct control_token *a, const struct control_token *b)
{
	return memcmp(a->issuer, b->issuer, sizeof(a->issuer)) == 0 &&
	       strcmp(a->subject, b->subject) == 0;
}

static bool
can_be_resumed(const struct session *s)
{
	return !s->runner.hung_up && (s->state == SESSION_STATE_ATTACHED ||
					 s->state == SESSION_STATE_DETACHED);
}

/* How long a session can live: with a session-deadline that long, else as long
 * as its clients could leave it alone. */
static int64_t
life_s(const struct broker *m, const struct identity *identity)
{
	uint32_t deadline = identity->limits.session_deadline_ms;
	uint32_t ttl = m->conf->limits.detached_ttl_ms;
	uint32_t kept = identity->limits.max_detached_ttl_ms;

	return (deadline > 0 ? deadline : kept > ttl ? kept : ttl) / 1000;
}

/* A token that has been expired for longer than a session can live is nobody's
 * who works in it, unless its owner has had this one for even longer. */
static bool
is_recent(const struct broker *m, const struct session *s,
    const struct control_token *t)
{
	int64_t since = (int64_t)s->bearer->since_s;
	int64_t life = (int64_t)time(NULL) - life_s(m, s->identity);

	return (int64_t)t->until_s >=
	       (since < life ? since : life) - (int64_t)m->conf->tokens.skew_s;
}

bool
session_token_may_resume(const struct broker *m, const struct session *s,
    const struct identity *identity, const struct control_token *t)
{
	return can_be_resumed(s) && identity_is(s->identity, identity) &&
	       s->bearer != NULL && has_same_owner(s->bearer, t) &&
	       is_recent(m, s, t);
}

bool
session_token_has_any(const struct broker *m, const struct identity *identity,
    const struct control_token *t)
{
	const struct session *s;

	TABLE_FOREACH (s, &m->sessions->by_pid, by_pid)
		if (s->state == SESSION_STATE_UNKNOWN
			? identity_is(s->identity, identity)
			: session_token_may_resume(m, s, identity, t))
			return true;
	return false;
}

struct control_token *
session_token_copy(const struct control_token *t)
{
	struct control_token *copy = xmalloc(sizeof(*copy));

	*copy = *t;
	return copy;
}

void
session_token_set(struct session *s, struct control_token *new)
{
	static const struct control_token none;
	struct control_token *old = s->bearer;

	s->bearer = new;
	if (old != NULL && new != NULL && has_same_owner(old, new))
		new->since_s = old->since_s;
	if ((old != NULL || new != NULL) &&
	    s->runner.version >= VERSION_WITH_TOKENS)
		session_send_command(s, RUNNER_COMMAND_TOKEN,
		    new != NULL ? new : &none, NULL, 0);
	free(old);
}

bool
session_token_take(struct session *s, const uint8_t *packet, size_t len)
{
	struct control_token t;

	if (control_get(packet, len, RUNNER_EVENT_TOKEN, &t) < 0 ||
	    t.since_s > SINCE_MAX)
		return false;
	free(s->bearer);
	s->bearer = t.there ? session_token_copy(&t) : NULL;
	return true;
}
