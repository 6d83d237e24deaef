/* SPDX-License-Identifier: ISC */
#include "process_tree.h"

#include <dirent.h>
#include <sys/random.h>

#include "children.h"

/*
 * Time for stopping all of them. A process that the kernel does not stop in
 * this time is not waited for.
 */
#define STOP_MS	    100
#define STOP_NAP_NS 200000

/*
 * A process that forked faster than it could be stopped is killed in the next
 * round.
 */
#define ROUNDS_MAX 5

/* How often a tree is read that changes meanwhile. */
#define WALKS_MAX 5

struct entry {
	pid_t pid, parent, group, session;
	/* identifies the process together with the pid */
	unsigned long long started;
	char state;
	enum { UNKNOWN, MEMBER, OTHER } kind;
	bool killed; /* in an earlier round; it may still be dying */
};

/* What to kill. Each round searches its members again. */
struct tree {
	const struct process_tree *of;
	enum process_target target;
};

struct entries {
	struct entry *all; /* owned; ordered by pid */
	size_t count, cap;
};

#define MARKS (1ull << 62)

uint64_t
process_tree_new_mark(void)
{
	static uint64_t next;
	uint32_t runner;

	if (next == 0) {
		if (getrandom(&runner, sizeof(runner), 0) !=
		    (ssize_t)sizeof(runner))
			return 0;
		next = MARKS | (uint64_t)(runner >> 2) << 32;
	}
	return ++next;
}

void
process_tree_set_mark(uint64_t mark)
{
	const struct rlimit limit = { mark, mark };
	struct rlimit old;

	if (mark != 0 && getrlimit(RLIMIT_RTTIME, &old) == 0 &&
	    old.rlim_cur == RLIM_INFINITY)
		setrlimit(RLIMIT_RTTIME, &limit);
}

static bool
has_mark(pid_t pid, uint64_t mark)
{
	struct rlimit limit;

	return mark != 0 && prlimit(pid, RLIMIT_RTTIME, NULL, &limit) == 0 &&
	       limit.rlim_max == mark;
}

/*
 * Reads /proc/PID/stat (proc(5)), whose fields follow the name in parentheses.
 * Returns 0 or -errno; -ESRCH also for a dead process.
 */
static int
read_entry(pid_t pid, struct entry *e)
{
	char path[64], text[1024];
	const char *end;
	ssize_t n;

	*e = (struct entry){ .pid = pid };
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	n = read_whole(AT_FDCWD, path, text, sizeof(text));
	if (n <= 0)
		return n < 0 ? (int)n : -ESRCH;
	end = strrchr(text, ')');
	if (end == NULL ||
	    sscanf(end + 1,
		" %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
		"%*d %*d %*d %*d %llu",
		&e->state, &e->parent, &e->group, &e->session,
		&e->started) != 5)
		return -EPROTO;
	return e->state == 'Z' || e->state == 'X' ? -ESRCH : 0;
}

static void
add_pid(pid_t pid, void *arg)
{
	struct entries *list = arg;

	if (list->count == list->cap) {
		list->cap = list->cap ? list->cap * 2 : 64;
		list->all =
		    xreallocarray(list->all, list->cap, sizeof(*list->all));
	}
	list->all[list->count++] = (struct entry){ .pid = pid };
}

static int
compare_pids(const void *a, const void *b)
{
	pid_t x = ((const struct entry *)a)->pid;
	pid_t y = ((const struct entry *)b)->pid;

	return x < y ? -1 : x > y;
}

/*
 * Lists what is below the runner: every process of the session is, because the
 * runner gets its orphans. Of a host with many others these are few. Returns
 * -errno if one ended meanwhile: its children have another parent now, who may
 * have been asked before.
 */
static int
list_session(struct entries *list)
{
	int err;

	list->count = 0;
	err = children_of(0, add_pid, list);
	for (size_t i = 0; err == 0 && i < list->count; i++)
		err = children_of(list->all[i].pid, add_pid, list);
	return err;
}

static int
list_host(struct entries *list)
{
	DIR *d = opendir("/proc");
	struct dirent *name;

	if (d == NULL)
		return -errno;
	list->count = 0;
	while ((name = readdir(d)) != NULL)
		if (name->d_name[0] >= '1' && name->d_name[0] <= '9')
			add_pid(atoi(name->d_name), list);
	closedir(d);
	return 0;
}

/* Keeps each that is still there, once. */
static void
read_entries(struct entries *list)
{
	size_t n = 0;

	if (list->count > 1)
		qsort(list->all, list->count, sizeof(*list->all), compare_pids);
	for (size_t i = 0; i < list->count; i++) {
		pid_t pid = list->all[i].pid;

		if ((n == 0 || list->all[n - 1].pid != pid) &&
		    read_entry(pid, &list->all[n]) == 0)
			n++;
	}
	list->count = n;
}

/*
 * A tree that does not hold still, or that the kernel does not show, is looked
 * for on the whole host.
 */
static int
read_all(struct entries *list)
{
	int err = -ENOENT;

	for (int i = 0; i < WALKS_MAX && err < 0; i++)
		err = list_session(list);
	if (err < 0)
		err = list_host(list);
	if (err == 0)
		read_entries(list);
	return err;
}

static struct entry *
find(const struct entries *list, pid_t pid)
{
	const struct entry key = { .pid = pid };

	return list->count == 0 ? NULL
				: bsearch(&key, list->all, list->count,
				      sizeof(key), compare_pids);
}

/*
 * Goes up to an ancestor whose kind is known, then gives that kind to all on
 * the way. So each process is visited at most twice.
 */
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

uint64_t
process_tree_now(void)
{
	uint64_t per_second = (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * per_second +
	       (uint64_t)t.tv_nsec / (1000000000 / per_second);
}

/* Tells whether `id` is the leader's number, and the leader's still. */
static bool
is_led(const struct entry *e, pid_t id, const struct process_tree *t)
{
	return id == t->leader && (t->reaped == 0 || e->started <= t->reaped);
}

static void
mark(const struct entries *list, const struct tree *t)
{
	for (size_t i = 0; i < list->count; i++) {
		struct entry *e = &list->all[i];

		if (t->target == PROCESS_GROUP)
			e->kind = is_led(e, e->group, t->of) ? MEMBER : OTHER;
		else if (is_led(e, e->pid, t->of) ||
			 is_led(e, e->session, t->of) ||
			 has_mark(e->pid, t->of->mark))
			e->kind = MEMBER;
	}
	for (size_t i = 0; i < list->count; i++)
		mark_line(list, &list->all[i]);
}

/*
 * Sends the signal to that very process, not to a later one with the same pid.
 */
static bool
send_one(const struct entry *e, int sig)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, e->pid, 0);
	struct entry now;

	if (fd < 0 || read_entry(e->pid, &now) < 0 || now.started != e->started)
		return false;
	return syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0) == 0;
}

static int
send_all(const struct entries *list, int sig)
{
	int sent = 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->all[i].kind == MEMBER && !list->all[i].killed &&
		    send_one(&list->all[i], sig))
			sent++;
	return sent;
}

/*
 * Returns false if every member was found stopped, so that none of them forks.
 * Having sent the signal is not enough: a process may be in the middle of a
 * fork.
 */
static bool
stop_all(const struct entries *list)
{
	bool running = false;

	for (size_t i = 0; i < list->count; i++) {
		const struct entry *e = &list->all[i];

		if (e->kind != MEMBER || e->killed || e->state == 'T' ||
		    e->state == 't')
			continue;
		running |= send_one(e, SIGSTOP);
	}
	return running;
}

/* Whoever is younger comes first. In one tick of the clock that is whoever has
 * the higher pid. */
static int
compare_ages(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->started != y->started)
		return x->started > y->started ? -1 : 1;
	return compare_pids(b, a);
}

/*
 * Kills children before their parents. When a parent ends first, the kernel
 * continues a stopped process group if it becomes orphaned.
 */
static int
kill_stopped(struct entries *list)
{
	if (list->count > 1)
		qsort(list->all, list->count, sizeof(*list->all), compare_ages);
	return send_all(list, SIGKILL);
}

/* Who was killed forks no more, and is not waited for. */
static void
mark_killed(const struct entries *list, const struct entries *killed)
{
	for (size_t i = 0; i < list->count; i++) {
		struct entry *e = &list->all[i];
		const struct entry *k = find(killed, e->pid);

		e->killed =
		    k != NULL && k->kind == MEMBER && k->started == e->started;
	}
}

/* Returns how many were killed, or -errno. *killed is of the round before, and
 * then of this one. */
static int
kill_round(const struct tree *t, struct entries *killed)
{
	const struct timespec nap = { 0, STOP_NAP_NS };
	int64_t deadline = now_ms() + STOP_MS;
	struct entries list = { 0 };
	int err;

	while ((err = read_all(&list)) == 0) {
		mark(&list, t);
		mark_killed(&list, killed);
		if (!stop_all(&list) || now_ms() >= deadline)
			break;
		nanosleep(&nap, NULL);
	}
	if (err == 0)
		err = kill_stopped(&list);
	if (list.count > 1)
		qsort(list.all, list.count, sizeof(*list.all), compare_pids);
	free(killed->all);
	*killed = list;
	return err;
}

static int
kill_all(const struct tree *t)
{
	struct entries killed = { 0 };
	int first = kill_round(t, &killed), n = first;

	for (int round = 1; n > 0 && round < ROUNDS_MAX; round++)
		n = kill_round(t, &killed);
	free(killed.all);
	return n < 0 ? n : first;
}

int
process_tree_signal(
    const struct process_tree *t, int sig, enum process_target target)
{
	const struct tree tree = { t, target };
	struct entries list = { 0 };
	int err;

	if (sig == SIGKILL)
		return kill_all(&tree);
	err = read_all(&list);
	if (err == 0) {
		mark(&list, &tree);
		err = send_all(&list, sig);
	}
	free(list.all);
	return err;
}
