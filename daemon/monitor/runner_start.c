/*
 * Start of runners. Loading a program costs more than all the rest of a
 * session's start, so each identity has a template: an execd-runner that was
 * loaded once and forks itself on order. An identity's own, so that nobody
 * learns from his runner where in memory another's has what.
 */
#include "runner_start.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "control.h"
#include "log.h"
#include "namespaces.h"
#include "seqpacket.h"
#include "util.h"

/* A fork takes a millisecond. One that needs this long hangs, and everybody
 * waits for it meanwhile: another one takes over. */
#define TEMPLATE_PATIENCE_MS 2000

static TAILQ_HEAD(, runner_template) templates = TAILQ_HEAD_INITIALIZER(
    templates);

/* What the operator allows every process of the session. An ordinary user's
 * execd cannot raise what it has itself; that is not silent. */
static void
limit_resources(const struct identity *id)
{
	const struct identity_limits *l = &id->limits;
	const struct {
		const char *key;
		int resource;
		uint64_t value;
	} limits[] = {
		{ "max-processes", RLIMIT_NPROC, l->max_processes },
		{ "max-open-files", RLIMIT_NOFILE, l->max_open_files },
		{ "max-cpu-time", RLIMIT_CPU, l->max_cpu_ms / 1000 },
		{ "max-memory", RLIMIT_AS, l->max_memory_bytes },
		{ "max-file-size", RLIMIT_FSIZE, l->max_file_bytes },
	};

	for (size_t i = 0; i < nitems(limits); i++) {
		struct rlimit r = { limits[i].value, limits[i].value };

		/* First SIGXCPU, which says why, then SIGKILL. */
		if (limits[i].resource == RLIMIT_CPU)
			r.rlim_max++;
		if (limits[i].value > 0 &&
		    setrlimit(limits[i].resource, &r) < 0)
			log_fatal_errno(-errno, "runner for %s: %s %llu",
			    id->name, limits[i].key,
			    (unsigned long long)limits[i].value);
	}
}

static char **
template_environment(const struct identity *id)
{
	size_t n = 0;
	char **env;

	while (id->env[n] != NULL)
		n++;
	env = xcalloc(n + 2, sizeof(char *));
	memcpy(env, id->env, n * sizeof(char *));
	env[n] = (char *)(uintptr_t)CONTROL_TEMPLATE_VARIABLE;
	return env;
}

/* All that one session of the identity has in common with the next. */
static void __attribute__((noreturn)) template_child(
    int program_fd, const struct identity *id, bool root, int control_fd)
{
	char *argv[] = { (char *)(uintptr_t) "execd-runner",
		(char *)(uintptr_t) "--template", NULL };

	child_reset_signals();
	setsid();
	child_place(program_fd, control_fd);
	limit_resources(id);
	if (id->umask != CONF_MODE_UNSET)
		umask((mode_t)id->umask);
	if (root && setgroups(id->ngids, id->gids) < 0)
		log_fatal_errno(-errno, "runner for %s: its groups", id->name);
	child_run(argv, template_environment(id));
}

static int
template_start(struct runner_template *t, int program_fd,
    const struct identity *id, bool root)
{
	int pair[2], err = seqpacket_pair(pair);
	pid_t pid;

	if (err < 0)
		return err;
	pid = namespaces_fork(false, false);
	if (pid == 0)
		template_child(program_fd, id, root, pair[1]);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return (int)pid;
	}
	t->pid = pid;
	t->fd = pair[0];
	TAILQ_INSERT_TAIL(&templates, t, link);
	return 0;
}

void
runner_template_stop(struct runner_template *t)
{
	if (t->fd < 0)
		return;
	close(steal_fd(&t->fd));
	t->owes = false;
	if (t->pid > 0) {
		kill(t->pid, SIGKILL);
		while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	t->pid = 0;
	TAILQ_REMOVE(&templates, t, link);
}

void
runner_template_stop_all(void)
{
	while (!TAILQ_EMPTY(&templates))
		runner_template_stop(TAILQ_FIRST(&templates));
}

bool
runner_template_has(pid_t pid)
{
	struct runner_template *t;

	TAILQ_FOREACH (t, &templates, link)
		if (t->pid == pid)
			return true;
	return false;
}

bool
runner_template_reap(pid_t pid, int status)
{
	struct runner_template *t;

	TAILQ_FOREACH (t, &templates, link) {
		if (t->pid != pid)
			continue;
		log_error(0, "a template of runners ended, status %#x", status);
		t->pid = 0;
		runner_template_stop(t);
		return true;
	}
	return false;
}

static int
send_order(struct runner_template *t,
    const struct control_template_start *start, const int *fds, size_t nfds)
{
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, TEMPLATE_ORDER_START, start);
	err = seqpacket_send(t->fd, b.data, b.len, fds, nfds);
	buf_clear(&b);
	t->owes = err == 0;
	return err;
}

/* The pid, or -errno: its own, or that of a template that is no more. */
static pid_t
take_answer(struct runner_template *t)
{
	struct pollfd answer = { .fd = t->fd, .events = POLLIN };
	struct control_template_started started;
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int got[SEQPACKET_FDS_MAX];
	size_t ngot = 0;
	ssize_t n;

	t->owes = false;
	while (poll(&answer, 1, TEMPLATE_PATIENCE_MS) < 0 && errno == EINTR)
		continue;
	n = seqpacket_recv(t->fd, packet, sizeof(packet), got, &ngot);
	while (n > 0 && ngot > 0)
		close(got[--ngot]);
	if (n == 0 || n == -ECONNRESET)
		return -EPIPE;
	/* Unread, its answer would be taken for that to the next order. */
	if (n < 0)
		return n == -EAGAIN ? -EAGAIN : -EPROTO;
	if (control_get(packet, (size_t)n, TEMPLATE_REPORT_STARTED, &started) <
	    0)
		return -EPROTO;
	return started.pid > 0 ? (pid_t)started.pid : -(pid_t)started.error;
}

/* It ended unseen, or hangs: another one is asked. */
static bool
is_template_s(int err)
{
	return err == -EPIPE || err == -EAGAIN;
}

/* Its own failures are the end of a template. */
static void
judge(struct identity *id, int err)
{
	if (!is_template_s(err) && err != -EPROTO)
		return;
	log_error(err, "runner for %s: its template", id->name);
	runner_template_stop(&id->template);
}

int
runner_order(int program_fd, struct identity *id, bool root, int control_fd,
    const int joins[CGROUP_HIERARCHIES])
{
	struct control_template_start start = {
		.isolated = root, .uid = id->uid, .gid = id->gid
	};
	int fds[1 + CGROUP_HIERARCHIES] = { control_fd };
	struct runner_template *t = &id->template;
	size_t nfds = 1;
	int err = -EPIPE;

	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		if (joins[i] < 0)
			continue;
		start.joins |= (uint8_t)(1u << i);
		fds[nfds++] = joins[i];
	}
	for (int tries = 0; tries < 2 && is_template_s(err); tries++) {
		err = t->fd < 0 ? template_start(t, program_fd, id, root) : 0;
		if (t->fd < 0)
			return err;
		err = send_order(t, &start, fds, nfds);
		judge(id, err);
	}
	return err;
}

pid_t
runner_collect(struct identity *id)
{
	pid_t pid;

	if (!id->template.owes)
		return -EPIPE; /* it is another one */
	pid = take_answer(&id->template);
	judge(id, pid);
	return pid;
}

pid_t
runner_start(int program_fd, struct identity *id, bool root, int control_fd,
    const int joins[CGROUP_HIERARCHIES])
{
	pid_t pid = -EPIPE;

	for (int tries = 0; tries < 2 && is_template_s(pid); tries++) {
		pid = runner_order(program_fd, id, root, control_fd, joins);
		if (pid == 0)
			pid = runner_collect(id);
	}
	return pid;
}

int
runner_probe(const char **step)
{
	pid_t pid;
	int status;

	*step = "a new pid and mount namespace";
	pid = namespaces_fork(true, false);
	if (pid < 0)
		return (int)pid;
	if (pid == 0)
		_exit(-namespaces_enter(step));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	*step = "an own /proc";
	if (!WIFEXITED(status))
		return -EIO;
	return -WEXITSTATUS(status);
}
