/* SPDX-License-Identifier: ISC */
#include "identity_usage.h"

#include <stdio.h>
#include <string.h>

#include "broker_state.h"
#include "conf.h"
#include "identity.h"
#include "session_registry.h"
#include "session_usage.h"
#include "stats.h"

/* Reads what the session uses now. Its processor time never goes back: without
 * a control group the time of a process is lost if nobody waited for it. */
static void
read_session(struct session *s)
{
	struct used *used = &s->used;
	struct session_usage now;

	session_usage_read(s, &now);
	used->has_memory = now.has_memory;
	used->memory_bytes = now.memory_bytes;
	if (!now.has_cpu)
		return;
	if (!used->has_cpu && s->runner.adopted)
		used->before_ms = now.cpu_ms;
	used->has_cpu = true;
	if (now.cpu_ms > used->cpu_ms)
		used->cpu_ms = now.cpu_ms;
}

void
identity_usage_adopt(struct broker *m, struct session *s)
{
	if (stats_are_wanted(m->conf))
		read_session(s);
}

void
identity_usage_end(struct broker *m, struct session *s)
{
	struct identity_usage *all = &s->identity->usage;

	if (!stats_are_wanted(m->conf))
		return;
	read_session(s);
	all->ever = true;
	all->cpu_lost |= !s->used.has_cpu;
	all->ended_cpu_ms += s->used.cpu_ms - s->used.before_ms;
}

/* --- all of them --------------------------------------------------------- */

static void
begin(struct identity_usage *all)
{
	all->sessions = 0;
	all->cpu_ms = all->ended_cpu_ms;
	all->memory_bytes = 0;
	all->has_cpu = !all->cpu_lost;
	all->has_memory = true;
}

static void
add(struct identity_usage *all, const struct used *used)
{
	all->ever = true;
	all->sessions++;
	all->has_cpu &= used->has_cpu;
	all->has_memory &= used->has_memory;
	all->cpu_ms += used->cpu_ms - used->before_ms;
	all->memory_bytes += used->memory_bytes;
}

struct turn {
	size_t first, seen; /* sessions; those from the first on are read */
};

static void
session_visit(struct table_node *node, void *arg)
{
	struct session *s = TABLE_OBJECT(node, struct session, by_id);
	struct turn *turn = arg;

	if (turn->seen >= turn->first &&
	    turn->seen - turn->first < IDENTITY_USAGE_READ_MAX)
		read_session(s);
	turn->seen++;
	add(&s->identity->usage, &s->used);
}

static void
put(struct control_metrics *out, const struct identity *id)
{
	const struct identity_usage *all = &id->usage;
	struct control_identity_usage *to = &out->identities[out->nidentities];

	/* Only the name of an ordinary user who has no file could be so long.
	 */
	if (out->nidentities == METRICS_IDENTITIES_MAX ||
	    strlen(id->name) >= sizeof(to->name)) {
		out->identities_left_out++;
		return;
	}
	out->nidentities++;
	snprintf(to->name, sizeof(to->name), "%s", id->name);
	to->sessions = all->sessions;
	to->has_cpu = all->has_cpu;
	to->cpu_ms = all->has_cpu ? all->cpu_ms : 0;
	to->has_memory = all->has_memory;
	to->memory_bytes = all->has_memory ? all->memory_bytes : 0;
}

void
identity_usage_collect(struct broker *m, struct control_metrics *out)
{
	static struct turn turn;
	const struct conf *c = m->conf;

	for (size_t i = 0; i < c->nidentities; i++)
		begin(&c->identities[i]->usage);
	turn.seen = 0;
	table_each(&m->sessions->by_id, session_visit, &turn);
	turn.first += IDENTITY_USAGE_READ_MAX;
	if (turn.first >= turn.seen)
		turn.first = 0;
	/* Those that have or had sessions come first. */
	for (int ever = 1; ever >= 0; ever--)
		for (size_t i = 0; i < c->nidentities; i++)
			if (c->identities[i]->usage.ever == ever)
				put(out, c->identities[i]);
}
