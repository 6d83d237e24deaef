/* SPDX-License-Identifier: ISC */
/*
 * How much of the host a session uses.
 */
#include "session_usage.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"
#include "session_registry.h"
#include "spawn_client.h"
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
