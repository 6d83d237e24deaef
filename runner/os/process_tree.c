/* SPDX-License-Identifier: ISC */
#include "process_tree.h"

#include <dirent.h>
#include <event2/event.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base.h"
#include "children.h"
#include "loop.h"

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
	bool killed;	/* in an earlier round; it may still be dying */
	unsigned depth; /* of a MEMBER below the topmost one; 0: unknown */
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
	_cleanup_close_ int fd = -1;
	const char *end;
	ssize_t n;

	*e = (struct entry){ .pid = pid };
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
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

/*
 * Goes up to an ancestor whose depth is known, then down again. The steps are
 * limited, because /proc changed while it was read.
 */
static void
measure_depth(const struct entries *list, struct entry *e)
{
	const struct entry *top = e;
	unsigned steps = 0;

	while (top != NULL && top->kind == MEMBER && top->depth == 0 &&
	       steps < list->count) {
		top = find(list, top->parent);
		steps++;
	}
	if (top != NULL && top->kind == MEMBER)
		steps += top->depth;
	for (; steps > 0 && e->depth == 0; e = find(list, e->parent))
		e->depth = steps--;
}

static int
compare_depths(const void *a, const void *b)
{
	unsigned x = ((const struct entry *)a)->depth;
	unsigned y = ((const struct entry *)b)->depth;

	return x > y ? -1 : x < y;
}

/*
 * Kills children first. When a parent ends first, the kernel continues a
 * stopped process group if it becomes orphaned.
 */
static int
kill_stopped(struct entries *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->all[i].kind == MEMBER)
			measure_depth(list, &list->all[i]);
	if (list->count > 1)
		qsort(
		    list->all, list->count, sizeof(*list->all), compare_depths);
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

/* --- children ----------------------------------------------------------- */

/* Reaps children, and makes sure that none is left at the end. */

/* Of /proc/PID/status, which has about 1500. */
#define STATUS_BYTES 8192

static struct table watches;
static bool owns_namespace;
static void (*on_idle)(void);
static int signal_fd = -1;

static bool
match_pid(const struct table_node *node, const void *key)
{
	return TABLE_OBJECT(node, const struct reaper_watch, node)->pid ==
	       *(const pid_t *)key;
}

static void
reap(void)
{
	struct rusage usage;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		struct table_node *node =
		    table_find(&watches, (uint64_t)pid, match_pid, &pid);
		struct reaper_watch *w;

		if (node == NULL)
			continue; /* an orphan of the session */
		w = TABLE_OBJECT(node, struct reaper_watch, node);
		reaper_remove(w);
		if (w->ended != NULL)
			w->ended(w, status, &usage);
	}
	if (pid < 0 && errno == ECHILD)
		on_idle();
}

static void
signal_cb(evutil_socket_t fd, short what, void *arg)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		continue;
	reap();
}

void
reaper_reset_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int
reaper_init(struct event_base *base, bool pid_namespace, void (*idle)(void))
{
	struct event *ev;
	sigset_t set;

	/* Otherwise kill(-1) would reach more than the session. */
	if (pid_namespace && getpid() != 1)
		return -EPERM;
	owns_namespace = pid_namespace;
	on_idle = idle;
	if (!pid_namespace && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -errno;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0)
		return -errno;
	ev = event_new(base, signal_fd, EV_READ | EV_PERSIST, signal_cb, NULL);
	if (ev == NULL)
		return -ENOMEM;
	loop_add(ev, NULL);
	return 0;
}

void
reaper_add(struct reaper_watch *w, pid_t pid,
    void (*ended)(
	struct reaper_watch *w, int wait_status, const struct rusage *usage))
{
	w->pid = pid;
	w->ended = ended;
	table_insert(&watches, &w->node, (uint64_t)pid);
}

void
reaper_remove(struct reaper_watch *w)
{
	if (w->pid <= 0)
		return;
	table_remove(&watches, &w->node);
	w->pid = 0;
}

bool
reaper_is_stopped(const struct reaper_watch *w)
{
	siginfo_t info = { 0 };

	/* WNOWAIT keeps the state, so that it can be asked again. */
	return w->pid > 0 &&
	       waitid(P_PID, (id_t)w->pid, &info,
		   WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == w->pid;
}

/* Adds the number behind a name in /proc/PID/status. */
static bool
add_number(const char *text, const char *name, uint64_t *sum)
{
	const char *at = strstr(text, name);

	if (at == NULL)
		return false;
	*sum += strtoull(at + strlen(name), NULL, 10);
	return true;
}

bool
reaper_is_waiting(const struct reaper_watch *w, uint64_t *switches)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	char text[STATUS_BYTES];
	const char *state;
	ssize_t n;

	*switches = 0;
	if (w->pid <= 0)
		return false;
	path = xasprintf("/proc/%d/status", w->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return false;
	text[n] = '\0';
	state = strstr(text, "\nState:\t");
	return state != NULL && (state[8] == 'S' || state[8] == 'D') &&
	       add_number(text, "\nvoluntary_ctxt_switches:\t", switches) &&
	       add_number(text, "\nnonvoluntary_ctxt_switches:\t", switches);
}

bool
reaper_is_watched(pid_t pid)
{
	return table_find(&watches, (uint64_t)pid, match_pid, &pid) != NULL;
}

bool
reaper_has_children(void)
{
	siginfo_t info = { 0 };

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void
look_for_orphan(pid_t pid, void *arg)
{
	bool *found = arg;

	*found |= !reaper_is_watched(pid);
}

bool
reaper_has_orphans(void)
{
	bool found = false;

	return children_each(look_for_orphan, &found) < 0 || found;
}

static void
signal_one(pid_t pid, void *arg)
{
	const int *sig = arg;

	/*
	 * The signal goes to the whole group of a group leader. The pid of a
	 * child is not reused before we reap it.
	 */
	if (getpgid(pid) == pid)
		kill(-pid, *sig);
	else
		kill(pid, *sig);
}

void
reaper_signal_all(int sig)
{
	/*
	 * For kill(-1) the kernel visits every process of the host, so it is
	 * skipped if there are no children: in a pid namespace every orphan is
	 * our child.
	 */
	if (owns_namespace && reaper_has_children())
		kill(-1, sig);
	else if (!owns_namespace)
		children_each(signal_one, &sig);
}

void
reaper_kill_all(int timeout_ms)
{
	int64_t deadline = now_ms() + timeout_ms;
	struct pollfd pfd = { .fd = signal_fd, .events = POLLIN };
	struct signalfd_siginfo info;

	while (reaper_has_children() && now_ms() < deadline) {
		reaper_signal_all(SIGKILL);
		/*
		 * Processes that die leave their children to us. So look again
		 * at each death, and every 10 ms in case one was missed.
		 */
		poll(&pfd, 1, 10);
		while (read(signal_fd, &info, sizeof(info)) > 0)
			continue;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
	}
}
