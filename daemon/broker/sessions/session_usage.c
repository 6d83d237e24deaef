/* SPDX-License-Identifier: ISC */
/*
 * How much of the host each session uses, and each identity.
 */
#include "session_usage.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "broker_state.h"
#include "cgroup.h"
#include "conf.h"
#include "identity.h"
#include "session_registry.h"
#include "spawn_client.h"
#include "stats.h"
#include "util.h"

/* The most processes that are added up where there is no control group. If
 * there are more, nothing is reported, which is better than a wrong sum. */
#define PROCESSES_MAX 512

/* The directories above the control groups of all sessions. */
static struct cgroup above = CGROUP_NONE;

_Static_assert(STORED_GROUPS + CGROUP_HIERARCHIES == STORED_MAX, "places");

void
session_usage_init(void)
{
	for (unsigned i = 0; i < CGROUP_HIERARCHIES; i++)
		above.dirs[i] = spawn_take(STORED_GROUPS + i);
}

void
session_usage_learn(const struct cgroup *group)
{
	for (unsigned i = 0; i < CGROUP_HIERARCHIES; i++) {
		if (above.dirs[i] >= 0 || group->dirs[i] < 0)
			continue;
		above.dirs[i] = openat(
		    group->dirs[i], "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (above.dirs[i] >= 0)
			spawn_store(STORED_GROUPS + i, above.dirs[i]);
	}
}

/* --- from a control group ----------------------------------------------- */

static bool
read_text(int dir, const char *path, char *text, size_t size)
{
	_cleanup_close_ int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return true;
}

/* Returns the number after the key. With the key "", the whole file is the
 * number. */
static bool
read_number(const struct session *s, enum cgroup_hierarchy hierarchy,
    const char *file, const char *key, uint64_t *value)
{
	char path[CONTROL_GROUP_MAX + 64], text[1024];
	unsigned long long n;
	const char *at;

	snprintf(path, sizeof(path), "%s/%s", s->group, file);
	if (above.dirs[hierarchy] < 0 ||
	    !read_text(above.dirs[hierarchy], path, text, sizeof(text)))
		return false;
	at = strstr(text, key);
	if (at == NULL || sscanf(at + strlen(key), "%llu", &n) != 1)
		return false;
	*value = n;
	return true;
}

static void
read_group(const struct session *s, struct session_usage *u)
{
	uint64_t n;

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

/* --- from the processes ------------------------------------------------- */

struct walk {
	pid_t pids[PROCESSES_MAX]; /* the first `done` of them are added */
	size_t count, done;
	uint64_t ticks, pages;
	bool whole;
};

static void
add_children(struct walk *w, pid_t pid)
{
	char path[64], text[16384];
	char *at = text;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid,
	    (int)pid);
	if (!read_text(AT_FDCWD, path, text, sizeof(text)))
		return;
	w->whole &= strlen(text) < sizeof(text) - 1;
	for (char *end; *at != '\0'; at = end) {
		pid_t child = (pid_t)strtol(at, &end, 10);

		if (end == at)
			break;
		while (*end == ' ')
			end++;
		if (w->count < PROCESSES_MAX)
			w->pids[w->count++] = child;
		else
			w->whole = false;
	}
}

/* Adds the process's own time, and that of the children that it has waited for:
 * proc_pid_stat(5). */
static bool
add_process(struct walk *w, pid_t pid)
{
	unsigned long long user, system, user_children, system_children, pages;
	char path[64], text[1024];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (!read_text(AT_FDCWD, path, text, sizeof(text)) ||
	    (at = strrchr(text, ')')) == NULL ||
	    sscanf(at,
		") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu "
		"%llu %llu %*d %*d %*d %*d %*u %*u %llu",
		&user, &system, &user_children, &system_children, &pages) != 5)
		return false;
	w->ticks += user + system + user_children + system_children;
	w->pages += pages;
	return true;
}

static void
read_processes(const struct session *s, struct session_usage *u)
{
	static struct walk w; /* large; there is only one user at a time */
	uint64_t per_second = (uint64_t)sysconf(_SC_CLK_TCK);

	w.count = w.done = 0;
	w.ticks = w.pages = 0;
	w.whole = true;
	w.pids[w.count++] = s->runner.pid;
	if (s->runner.pid <= 0 || !add_process(&w, s->runner.pid))
		return;
	add_children(&w, s->runner.pid);
	for (w.done = 1; w.done < w.count; w.done++) {
		add_process(&w, w.pids[w.done]);
		add_children(&w, w.pids[w.done]);
	}
	if (!w.whole)
		return;
	if (!u->has_cpu)
		u->cpu_ms = w.ticks * 1000 / per_second;
	if (!u->has_memory)
		u->memory_bytes = w.pages * (uint64_t)sysconf(_SC_PAGESIZE);
	if (!u->has_processes)
		u->processes = w.count;
	u->has_cpu = u->has_memory = u->has_processes = true;
}

void
session_usage_read(const struct session *s, struct session_usage *u)
{
	*u = (struct session_usage){ .has_cpu = false };
	read_group(s, u);
	if (!u->has_cpu || !u->has_memory || !u->has_processes)
		read_processes(s, u);
}

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
