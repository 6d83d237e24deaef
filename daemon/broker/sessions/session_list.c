/* SPDX-License-Identifier: ISC */
/*
 * session/list: the sessions of one identity, for a client of that identity.
 */
#include "base.h"
#include "session_registry.h"

#include "broker_state.h"
#include "conf.h"
#include "identity.h"

uint64_t
session_number(const struct session *s)
{
	return strtoull(s->group + strlen(SESSION_GROUP_PREFIX), NULL, 10);
}

/* The sessions with the lowest numbers behind `after', sorted. */
struct page {
	const struct identity *identity;
	uint64_t after;
	uint32_t count;
	bool more;
	struct row {
		uint64_t number;
		const struct session *session;
	} rows[CONTROL_LISTED_MAX];
};

/* Those that are ending can be neither resumed nor watched. */
static bool
is_wanted(const struct page *p, const struct session *s)
{
	return (s->state == SESSION_STATE_ATTACHED ||
		   s->state == SESSION_STATE_DETACHED) &&
	       !s->runner.hung_up && identity_is(s->identity, p->identity);
}

static void
put_on_page(struct page *p, const struct session *s)
{
	uint64_t number;
	uint32_t at;

	if (!is_wanted(p, s) || (number = session_number(s)) <= p->after)
		return;
	for (at = p->count; at > 0 && p->rows[at - 1].number > number; at--)
		continue;
	p->more |= p->count == CONTROL_LISTED_MAX;
	if (at == CONTROL_LISTED_MAX)
		return;
	p->count += p->count < CONTROL_LISTED_MAX;
	memmove(&p->rows[at + 1], &p->rows[at],
	    (p->count - 1 - at) * sizeof(p->rows[0]));
	p->rows[at] = (struct row){ number, s };
}

static uint64_t
between(int64_t from, int64_t to)
{
	return to > from ? (uint64_t)(to - from) : 0;
}

static int64_t
end_of(const struct session *s)
{
	return s->ends_ms > 0 && s->ends_ms < s->until_ms ? s->ends_ms
							  : s->until_ms;
}

static void
put(const struct broker *m, struct control_listed *l, const struct session *s)
{
	bool attached = s->state == SESSION_STATE_ATTACHED;
	int64_t now = now_ms();

	memcpy(l->session_id, s->id, sizeof(l->session_id));
	memcpy(l->peer, s->attachment.peer, sizeof(l->peer));
	l->number = session_number(s);
	l->age_ms = between(s->opened_ms, now);
	l->detached_ms = attached ? CONTROL_NONE : between(s->detached_ms, now);
	l->ends_in_ms = attached ? CONTROL_NONE : between(now, end_of(s));
	l->keep_ms = session_is_kept(s) ? s->keep.ms : CONTROL_NONE;
	l->keeps_running = s->keep.running;
	l->commands = s->runner.audited ? s->commands.running : CONTROL_NONE;
	l->watchers = s->watchers.count;
}

int
session_list_report(struct session *s, const union runner_report *r)
{
	struct page page = { .identity = s->identity, .after = r->list.after };
	const struct session *other;
	static struct control_list answer;

	TABLE_FOREACH (other, &broker.sessions->by_id, by_id)
		put_on_page(&page, other);
	answer = (struct control_list){ .number = r->list.number,
		.count = page.count,
		.more = page.more,
		.incomplete = broker.sessions->unknown > 0 };
	for (uint32_t i = 0; i < page.count; i++)
		put(&broker, &answer.sessions[i], page.rows[i].session);
	session_send_command(s, RUNNER_COMMAND_LIST, &answer, NULL, 0);
	return 0;
}

/* --- what runs in a session ----------------------------------------------- */

static void
forget_commands(struct session *s)
{
	free(s->commands.shown);
	s->commands.shown = NULL;
}

/* The runner is asked one question at a time, so that one that reads nothing is
 * not flooded. */
bool
session_ask_commands(struct session *s)
{
	if (s->runner.hung_up || s->runner.version < RUNNER_LIMITS)
		return false;
	forget_commands(s);
	if (!s->commands.asked)
		session_send_command(s, RUNNER_COMMAND_COMMANDS, NULL, NULL, 0);
	s->commands.asked = true;
	return true;
}

void
session_forget_commands(struct registry *r, const char *id)
{
	struct session *s = id[0] != '\0' ? session_of_id(r, id) : NULL;

	if (s != NULL)
		forget_commands(s);
}

static bool
is_text(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

/* The broker that asked may be gone. */
int
session_commands_report(struct session *s, const union runner_report *r)
{
	const struct control_commands *all = &r->commands;

	if (!s->commands.asked)
		return s->runner.adopted ? 0 : -EBADMSG;
	if (all->count > CONTROL_SHOWN_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < all->count; i++)
		if (!is_text(all->commands[i].process, CONTROL_PROCESS_MAX) ||
		    !is_text(
			all->commands[i].command, CONTROL_SHOWN_COMMAND_MAX))
			return -EBADMSG;
	s->commands.asked = false;
	free(s->commands.shown);
	s->commands.shown = xmalloc(sizeof(*all));
	*s->commands.shown = *all;
	return 0;
}
