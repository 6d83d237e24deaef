/* SPDX-License-Identifier: ISC */
#include <event2/event.h>
#include <sys/signalfd.h>

#include "base.h"
#include "children.h"
#include "loop.h"
#include "process_tree.h"

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
	char text[STATUS_BYTES];
	const char *state;

	*switches = 0;
	if (w->pid <= 0)
		return false;
	path = xasprintf("/proc/%d/status", w->pid);
	if (read_whole(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
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
