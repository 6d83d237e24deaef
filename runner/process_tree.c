/*
 * Who belongs to a command, by what /proc says now.
 */
#include "process_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util.h"

/* Looks for those who were forked while the others were stopped. */
#define PASSES_MAX 32

struct entry {
	pid_t pid, parent, group, session;
	unsigned long long started; /* with the pid: which process it is */
	enum { UNKNOWN, MEMBER, OTHER } kind;
};

struct entries {
	struct entry *all; /* owned; in order of their pids */
	size_t count, cap;
};

/* proc(5): the fields of /proc/PID/stat behind the name in parentheses. 0 or
 * -errno; -ESRCH also for one that is dead already. */
static int
read_entry(const char *pid, struct entry *e)
{
	char path[64], text[1024];
	_cleanup_close_ int fd = -1;
	const char *end;
	ssize_t n;
	char state;

	*e = (struct entry){ .pid = atoi(pid) };
	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	end = strrchr(text, ')');
	if (end == NULL ||
	    sscanf(end + 1,
		" %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
		"%*d %*d %*d %*d %llu",
		&state, &e->parent, &e->group, &e->session, &e->started) != 5)
		return -EPROTO;
	return state == 'Z' || state == 'X' ? -ESRCH : 0;
}

static void
add_entry(struct entries *list, const struct entry *e)
{
	if (list->count == list->cap) {
		list->cap = list->cap ? list->cap * 2 : 64;
		list->all =
		    xreallocarray(list->all, list->cap, sizeof(*list->all));
	}
	list->all[list->count++] = *e;
}

static int
compare_pids(const void *a, const void *b)
{
	pid_t x = ((const struct entry *)a)->pid;
	pid_t y = ((const struct entry *)b)->pid;

	return x < y ? -1 : x > y;
}

static int
read_all(struct entries *list)
{
	DIR *d = opendir("/proc");
	struct dirent *name;
	struct entry e;

	if (d == NULL)
		return -errno;
	list->count = 0;
	while ((name = readdir(d)) != NULL)
		if (name->d_name[0] >= '1' && name->d_name[0] <= '9' &&
		    read_entry(name->d_name, &e) == 0)
			add_entry(list, &e);
	closedir(d);
	if (list->count > 1)
		qsort(list->all, list->count, sizeof(*list->all), compare_pids);
	return 0;
}

static struct entry *
find(const struct entries *list, pid_t pid)
{
	struct entry key = { .pid = pid };

	return list->count == 0 ? NULL
				: bsearch(&key, list->all, list->count,
				      sizeof(key), compare_pids);
}

/* Up to an ancestor of which it is known, then the same for all on the way:
 * every process is looked at twice at most. */
static void
mark_line(const struct entries *list, struct entry *e)
{
	struct entry *top = e;

	while (top != NULL && top->kind == UNKNOWN) {
		top->kind = OTHER;
		top = find(list, top->parent);
	}
	if (top == NULL || top->kind != MEMBER)
		return;
	for (; e != top; e = find(list, e->parent))
		e->kind = MEMBER;
}

static void
mark(const struct entries *list, pid_t leader, enum process_target target)
{
	for (size_t i = 0; i < list->count; i++) {
		struct entry *e = &list->all[i];

		if (target == PROCESS_GROUP)
			e->kind = e->group == leader ? MEMBER : OTHER;
		else if (e->pid == leader || e->session == leader)
			e->kind = MEMBER;
	}
	for (size_t i = 0; i < list->count; i++)
		mark_line(list, &list->all[i]);
}

/* To that very process, not to one that has its pid since. */
static bool
send(const struct entry *e, int sig)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, e->pid, 0);
	struct entry now;
	char pid[16];

	if (fd < 0)
		return errno == ENOSYS && kill(e->pid, sig) == 0;
	snprintf(pid, sizeof(pid), "%d", (int)e->pid);
	if (read_entry(pid, &now) < 0 || now.started != e->started)
		return false;
	return syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0) == 0;
}

static int
send_all(const struct entries *list, int sig)
{
	int sent = 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->all[i].kind == MEMBER && send(&list->all[i], sig))
			sent++;
	return sent;
}

/* Stops those who were not members before. False: there were none. */
static bool
stop_new(const struct entries *list, const struct entries *before)
{
	bool any = false;

	for (size_t i = 0; i < list->count; i++) {
		const struct entry *e = &list->all[i];
		const struct entry *old = find(before, e->pid);

		if (e->kind != MEMBER ||
		    (old != NULL && old->started == e->started &&
			old->kind == MEMBER))
			continue;
		any |= send(e, SIGSTOP);
	}
	return any;
}

static int
kill_all(pid_t leader, enum process_target target)
{
	struct entries list = { 0 }, before = { 0 };
	int err = 0, sent = 0;

	for (int pass = 0; pass < PASSES_MAX; pass++) {
		struct entries old = before;

		before = list;
		list = old;
		err = read_all(&list);
		if (err < 0)
			break;
		mark(&list, leader, target);
		if (!stop_new(&list, &before))
			break;
	}
	if (err == 0)
		sent = send_all(&list, SIGKILL);
	free(list.all);
	free(before.all);
	return err < 0 ? err : sent;
}

int
process_tree_signal(pid_t leader, int sig, enum process_target target)
{
	struct entries list = { 0 };
	int err;

	if (sig == SIGKILL)
		return kill_all(leader, target);
	err = read_all(&list);
	if (err == 0) {
		mark(&list, leader, target);
		err = send_all(&list, sig);
	}
	free(list.all);
	return err;
}
