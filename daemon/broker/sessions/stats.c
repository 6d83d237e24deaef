/* SPDX-License-Identifier: ISC */
/*
 * The broker's counters.
 */
#include "stats.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "broker_state.h"
#include "conf.h"
#include "frontend_child.h"
#include "session_registry.h"
#include "session_usage.h"
#include "spawn_client.h"
#include "tls_helpers.h"
#include "util.h"

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

static void
count_start(struct control_metrics *counts, uint32_t us)
{
	static const uint32_t bounds[METRICS_NBUCKETS - 1] = METRICS_BUCKETS;
	size_t i = 0;

	while (i < nitems(bounds) && us > bounds[i])
		i++;
	counts->start_us[i]++;
	counts->start_us_sum += us;
}

void
stats_started(
    struct broker *m, struct session *s, const struct control_started *p)
{
	s->commands.running++;
	m->counts.started++;
	count_start(&m->counts, p->start_us);
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
	m->counts.output_bytes += p->output_bytes;
}

void
stats_network(struct broker *m, const struct control_network *n)
{
	m->counts.network_allowed += n->allowed;
	m->counts.network_denied += !n->allowed;
}

/* Returns the resident memory, of proc_pid_statm(5), or 0 if the process is
 * gone. */
static uint64_t
memory_of(pid_t pid)
{
	char path[64], text[128] = "";
	_cleanup_close_ int fd = -1;
	unsigned long long pages = 0;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ||
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
session_visit(struct table_node *node, void *arg)
{
	const struct session *s = TABLE_OBJECT(node, struct session, by_id);
	struct control_metrics *out = arg;

	out->attached += s->state == SESSION_STATE_ATTACHED;
	out->detached += s->state == SESSION_STATE_DETACHED;
	out->ending += s->state == SESSION_STATE_LEAVING ||
		       s->state == SESSION_STATE_TERMINATING;
	out->processes += s->commands.running;
	if (out->programs[PROGRAM_RUNNER] < RUNNERS_READ_MAX)
		add_program(out, PROGRAM_RUNNER, s->runner.pid);
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
	uint64_t all = m->sessions->by_id.count, seen;

	*out = m->counts;
	out->records = audit->records;
	out->records_lost = audit->lost;
	out->record_failing = audit_is_failing(audit);
	note_ends(out, m->conf);
	add_program(out, PROGRAM_ROOT, spawn_root_pid());
	add_program(out, PROGRAM_BROKER, getpid());
	add_program(out, PROGRAM_FRONTEND, m->frontend->pid);
	TAILQ_FOREACH (helper, &m->helpers->all, link)
		add_program(out, PROGRAM_KEYS, helper->pid);
	table_each(&m->sessions->by_id, session_visit, out);
	identity_usage_collect(m, out);
	seen = out->programs[PROGRAM_RUNNER];
	if (seen > 0 && seen < all) {
		out->memory_bytes[PROGRAM_RUNNER] =
		    out->memory_bytes[PROGRAM_RUNNER] / seen * all;
		out->programs[PROGRAM_RUNNER] = all;
	}
}
