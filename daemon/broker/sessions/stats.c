/* SPDX-License-Identifier: ISC */
#include "stats.h"

#include "broker_state.h"
#include "conf.h"
#include "frontend_child.h"
#include "log_output.h"
#include "session_registry.h"
#include "spawn_client.h"

/*
 * How much of the host each session uses, and each identity.
 */

/* Returns the number after the key. With the key "", the whole file is the
 * number. */
static bool
read_number(const struct session *s, enum cgroup_hierarchy hierarchy,
    const char *file, const char *key, uint64_t *value)
{
	int above = spawn_sessions_group()->dirs[hierarchy];
	char path[2 * CONTROL_GROUP_MAX + 64], text[1024];
	unsigned long long n;
	const char *at;

	snprintf(path, sizeof(path), IDENTITY_GROUP_PREFIX "%llu/%s/%s",
	    (unsigned long long)s->identity_group, s->group, file);
	if (above < 0 || read_whole(above, path, text, sizeof(text)) <= 0)
		return false;
	at = strstr(text, key);
	if (at == NULL || sscanf(at + strlen(key), "%llu", &n) != 1)
		return false;
	*value = n;
	return true;
}

void
session_usage_read(const struct session *s, struct session_usage *u)
{
	uint64_t n;

	*u = (struct session_usage){ .has_cpu = false };
	if (read_number(s, CGROUP_UNIFIED, "cpu.stat", "usage_usec ", &n)) {
		u->has_cpu = true;
		u->cpu_ms = n / 1000;
	} else if (read_number(s, CGROUP_CPU, "cpuacct.usage", "", &n)) {
		u->has_cpu = true;
		u->cpu_ms = n / 1000000;
	}
	u->has_memory = read_number(s, CGROUP_UNIFIED, "memory.current", "",
			    &u->memory_bytes) ||
			read_number(s, CGROUP_MEMORY, "memory.usage_in_bytes",
			    "", &u->memory_bytes);
	u->has_processes =
	    read_number(s, CGROUP_UNIFIED, "pids.current", "", &u->processes) ||
	    read_number(s, CGROUP_PIDS, "pids.current", "", &u->processes);
}

/* Reads what the session uses now. What was read last stays known when its
 * group has gone. */
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
	to->denials = all->denials;
	to->has_cpu = all->has_cpu;
	to->cpu_ms = all->has_cpu ? all->cpu_ms : 0;
	to->has_memory = all->has_memory;
	to->memory_bytes = all->has_memory ? all->memory_bytes : 0;
}

static void
identity_usage_collect(struct broker *m, struct control_metrics *out)
{
	static size_t first; /* session that is read in this turn */
	const struct conf *c = m->conf;
	struct session *s;
	size_t seen = 0;

	for (size_t i = 0; i < c->nidentities; i++)
		begin(&c->identities[i]->usage);
	TABLE_FOREACH (s, &m->sessions->by_id, by_id) {
		if (seen >= first && seen - first < IDENTITY_USAGE_READ_MAX)
			read_session(s);
		seen++;
		add(&s->identity->usage, &s->used);
	}
	first += IDENTITY_USAGE_READ_MAX;
	if (first >= seen)
		first = 0;
	/* Those that have or had sessions come first. */
	for (int ever = 1; ever >= 0; ever--)
		for (size_t i = 0; i < c->nidentities; i++)
			if (c->identities[i]->usage.ever == ever)
				put(out, c->identities[i]);
}

/*
 * The broker's counters.
 */

/* The most runners whose memory is read for one answer. If there are more, the
 * sum is estimated from their mean. A read takes microseconds, in which
 * everybody waits. */
#define RUNNERS_READ_MAX 256

bool
stats_are_wanted(const struct conf *c)
{
	for (size_t i = 0; i < c->nlisteners; i++)
		if (c->listeners[i]->keys.operate)
			return true;
	return false;
}

void
stats_started(
    struct broker *m, struct session *s, const struct control_started *p)
{
	static const uint32_t bounds[METRICS_NBUCKETS - 1] = METRICS_BUCKETS;
	size_t i = 0;

	s->commands.running++;
	m->counts.started++;
	while (i < nitems(bounds) && p->start_us > bounds[i])
		i++;
	m->counts.start_us[i]++;
	m->counts.start_us_sum += p->start_us;
}

/* A runner that was taken over can report more ends than starts, but only its
 * own. */
void
stats_exited(
    struct broker *m, struct session *s, const struct control_exited *p)
{
	s->commands.running -= s->commands.running > 0;
	m->counts.exited[p->cause]++;
	m->counts.denied += p->denied;
	s->identity->usage.denials += p->denied;
	m->counts.output_bytes += p->output_bytes;
}

void
stats_network(
    struct broker *m, struct session *s, const struct control_network *n)
{
	s->identity->usage.denials += !n->allowed;
	m->counts.network_allowed += n->allowed;
	m->counts.network_denied += !n->allowed;
}

/* Returns the resident memory, of proc_pid_statm(5), or 0 if the process is
 * gone. */
static uint64_t
memory_of(pid_t pid)
{
	char path[64], text[128];
	unsigned long long pages = 0;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	if (read_whole(AT_FDCWD, path, text, sizeof(text)) <= 0 ||
	    sscanf(text, "%*u %llu", &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void
add_program(struct control_metrics *out, enum program program, pid_t pid)
{
	if (pid <= 0)
		return;
	out->programs[program]++;
	out->memory_bytes[program] += memory_of(pid);
}

static void
note_end(uint64_t *first, int64_t end)
{
	if (end > 0 && (*first == 0 || (uint64_t)end < *first))
		*first = (uint64_t)end;
}

static void
note_ends(struct control_metrics *out, const struct conf *c)
{
	for (size_t i = 0; i < c->nlisteners; i++) {
		note_end(
		    &out->certificate_end, c->listeners[i]->certificate_end);
		note_end(&out->crl_end, c->listeners[i]->crl_end);
	}
}

void
stats_collect(struct broker *m, struct control_metrics *out)
{
	const struct audit_rules *audit = &m->conf->audit;
	const struct helper_process *helper;
	const struct session *s;
	uint64_t all = m->sessions->by_id.count, seen;

	*out = m->counts;
	out->records = audit->records;
	out->records_lost = audit->lost;
	out->record_failing = audit_is_failing(audit);
	out->audit_lag_ms = audit_lag_ms(audit, now_ms());
	out->log_lost += log_output_queue()->ever_lost;
	out->kept = m->sessions->nkept;
	out->drained = m->drain.drained;
	note_ends(out, m->conf);
	add_program(out, PROGRAM_ROOT, spawn_root_pid());
	add_program(out, PROGRAM_BROKER, getpid());
	add_program(out, PROGRAM_FRONTEND, m->frontend->pid);
	TAILQ_FOREACH (helper, &m->helpers->all, link)
		add_program(out, PROGRAM_KEYS, helper->pid);
	TABLE_FOREACH (s, &m->sessions->by_id, by_id) {
		out->attached += s->state == SESSION_STATE_ATTACHED;
		out->detached += s->state == SESSION_STATE_DETACHED;
		out->ending += s->state == SESSION_STATE_LEAVING ||
			       s->state == SESSION_STATE_TERMINATING;
		out->processes += s->commands.running;
		out->silent += session_is_silent(s);
		if (out->programs[PROGRAM_RUNNER] < RUNNERS_READ_MAX)
			add_program(out, PROGRAM_RUNNER, s->runner.pid);
	}
	session_ask_all(m->sessions); /* for the next reading */
	identity_usage_collect(m, out);
	seen = out->programs[PROGRAM_RUNNER];
	if (seen > 0 && seen < all) {
		out->memory_bytes[PROGRAM_RUNNER] =
		    out->memory_bytes[PROGRAM_RUNNER] / seen * all;
		out->programs[PROGRAM_RUNNER] = all;
	}
}
