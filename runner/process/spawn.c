/* SPDX-License-Identifier: ISC */
/*
 * Starts a command. Between vfork() and exec() the child runs in the runner's
 * memory, so it only makes system calls. It reports a failure by writing to the
 * runner's own stack, or to a pipe if the runner does not wait for it.
 */
#include "spawn.h"

#include <paths.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "children.h"
#include "clone_into.h"
#include "command_cgroup.h"
#include "descriptors.h"
#include "environment.h"
#include "heap.h"
#include "program.h"
#include "sandbox.h"
#include "terminal_modes.h"

/* Stack of the child until exec. */
#define CHILD_STACK_BYTES (64u << 10)

/* The child's ends. */
struct child_ends {
	int in, out, err;
	int fault; /* -1: the runner waits */
};

static int
pipe_pair(int *ours, int *theirs, bool we_read)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*ours = fds[we_read ? 0 : 1];
	*theirs = fds[we_read ? 1 : 0];
	/* A new pipe has no other flags. */
	return fcntl(*ours, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int
open_pipes(const struct spawn_request *r, struct spawn_result *res,
    struct child_ends *c)
{
	int err = 0;

	if (r->pipe_stdin)
		err = pipe_pair(&res->in, &c->in, false);
	else
		c->in = r->null_fd;
	if (err == 0)
		err = pipe_pair(&res->out, &c->out, true);
	if (err == 0)
		err = pipe_pair(&res->err, &c->err, true);
	return err;
}

static int
set_modes(int slave, struct slice modes)
{
	struct termios t;

	if (modes.len == 0)
		return 0;
	if (tcgetattr(slave, &t) < 0)
		return -errno;
	terminal_modes_take(&t, modes.ptr, modes.len);
	return tcsetattr(slave, TCSANOW, &t) < 0 ? -errno : 0;
}

static int
open_tty(const struct spawn_request *r, struct spawn_result *res,
    struct child_ends *c)
{
	struct winsize ws = { .ws_row = r->rows, .ws_col = r->cols };
	int err;

	res->out = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (res->out < 0 || grantpt(res->out) < 0 || unlockpt(res->out) < 0 ||
	    ioctl(res->out, TIOCSWINSZ, &ws) < 0)
		return -errno;
	/* The slave of this very master: a name could lead to another one. */
	c->out = ioctl(res->out, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	err = c->out < 0 ? -errno : set_modes(c->out, r->modes);
	if (err < 0)
		return err;
	res->in = fcntl(res->out, F_DUPFD_CLOEXEC, 3);
	return res->in < 0 ? -errno : 0;
}

/* Closes everything but what the program gets, and the pipe for faults. */
static int
close_others(struct child_ends *c, int lowest)
{
	if (c->fault >= 0 && c->fault != lowest &&
	    dup3(c->fault, lowest, O_CLOEXEC) < 0)
		return -errno;
	if (c->fault >= 0)
		c->fault = lowest++;
	close_from(lowest);
	return 0;
}

/*
 * The steps of the child, in order: control group, session, terminal, standard
 * descriptors, directory, limits, parent-death signal, program.
 */
static int
child_steps(const struct spawn_request *r, struct child_ends *c, pid_t runner,
    bool born, const char **step)
{
	const struct rlimit core = { 0, RLIM_INFINITY };
	struct rlimit old;
	int err;

	*step = "control group";
	if (r->group != NULL && (err = cgroup_join(r->group->joins, born)) < 0)
		return err;
	*step = "setsid";
	if (setsid() < 0)
		return -errno;
	*step = "controlling terminal";
	if (r->tty && ioctl(c->out, TIOCSCTTY, 0) < 0)
		return -errno;
	*step = "standard descriptors";
	if (dup2(r->tty ? c->out : c->in, STDIN_FILENO) < 0 ||
	    dup2(c->out, STDOUT_FILENO) < 0 ||
	    dup2(r->tty ? c->out : c->err, STDERR_FILENO) < 0)
		return -errno;
	if (r->given > 0 && dup2(r->given, STDERR_FILENO + 1) < 0)
		return -errno;
	err = close_others(c, STDERR_FILENO + (r->given > 0 ? 2 : 1));
	if (err < 0)
		return err;
	*step = "working directory";
	if (chdir(r->cwd) < 0)
		return -errno;
	*step = "core limit";
	if (getrlimit(RLIMIT_CORE, &old) == 0) {
		old.rlim_cur = core.rlim_cur;
		if (setrlimit(RLIMIT_CORE, &old) < 0)
			return -errno;
	}
	*step = "limit of open files";
	err = descriptors_restrict();
	if (err < 0)
		return err;
	*step = "limit of processor time";
	err = program_limit_cpu(r->cpu_s);
	if (err < 0)
		return err;
	process_tree_set_mark(r->mark);
	*step = "parent-death signal";
	if (r->parent_death_signal && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if (r->parent_death_signal && getppid() != runner)
		return -ESRCH; /* the runner died before the signal was set */
	children_reset_signals();
	*step = "exec";
	return program_execute(r->candidates, r->argv, r->envp);
}

struct child {
	const struct spawn_request *request;
	struct child_ends *ends;
	volatile struct spawn_fault *fault;
	pid_t runner;
	bool born; /* started inside its version 2 group */
};

static void
report(int fd, int err, const char *step)
{
	const struct spawn_fault fault = { .err = err, .step = step };
	ssize_t n = write(fd, &fault, sizeof(fault));

	(void)n; /* nobody listens: the start was given up */
}

ON_OWN_STACK static int
run_child(void *arg)
{
	const struct child *c = arg;
	const char *step = NULL;
	int err = child_steps(c->request, c->ends, c->runner, c->born, &step);

	c->fault->err = err;
	c->fault->step = step;
	if (c->ends->fault >= 0)
		report(c->ends->fault, err, step);
	_exit(127);
}

/* Works only if the group is of version 2 and the kernel can clone into it. */
static pid_t
start_in_group(struct child *c)
{
	static _Alignas(HEAP_PAGE_BYTES) char stack[CHILD_STACK_BYTES];
	const struct group *g = c->request->group;

	if (g == NULL || g->cgroup.dirs[CGROUP_UNIFIED] < 0)
		return -ENOSYS;
	c->born = true;
	own_stack_reuse(stack, sizeof(stack));
	return clone_into(g->cgroup.dirs[CGROUP_UNIFIED], run_child, c, stack,
	    sizeof(stack), c->request->may_wait ? 0 : CLONE_VM | CLONE_VFORK);
}

static pid_t __attribute__((noinline))
start_child(const struct spawn_request *r, struct child_ends *c,
    volatile struct spawn_fault *fault)
{
	struct child child = { r, c, fault, getpid(), false };
	pid_t pid = start_in_group(&child);

	if (pid > 0 || !clone_into_is_missing(pid))
		return pid;
	child.born = false;
	pid = r->may_wait ? fork() : vfork();
	if (pid == 0)
		run_child(&child);
	return pid < 0 ? -errno : pid;
}

static void
close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/*
 * The sandboxed command has opened a terminal of its own. Its master replaces
 * the first one.
 */
static int
take_terminal(struct spawn_result *res, int master)
{
	bool done = dup3(master, res->out, O_CLOEXEC) >= 0 &&
		    dup3(master, res->in, O_CLOEXEC) >= 0;
	int err = done ? 0 : -errno;

	close(master);
	return err;
}

/* Starts the command in a sandbox; the sandbox does the steps. */
static int
start_inside(const struct spawn_request *r, const struct child_ends *c,
    struct spawn_result *res, struct spawn_fault *fault)
{
	/* Programs make their sockets there. */
	static const char *const names[] = { "TMPDIR", "TMUX_TMPDIR", NULL };
	static struct sandbox_answer answer; /* fault points into it */
	const char *tmpdir = r->sandbox->tmpdir;
	_cleanup_free_ char **envp =
	    tmpdir != NULL ? environment_default(r->envp, names, tmpdir) : NULL;
	const struct sandbox_command command = { .candidates = r->candidates,
		.argv = r->argv,
		.envp = envp != NULL ? envp : r->envp,
		.cwd = r->cwd,
		.instead = r->instead != NULL ? r->instead : "",
		.tty = r->tty,
		.given = r->given > 0,
		.resolver = r->resolver };
	const int stdio[3] = { r->tty ? c->out : c->in, c->out,
		r->tty ? c->out : c->err };
	int terminal, err = sandbox_start(r->sandbox, &command, stdio, r->group,
			  r->given, &terminal, &answer);

	/* Signals go to this pid and to -pid, so it must not be 1 or less. */
	if (err == 0 && answer.command <= 1)
		err = -EPROTO;
	res->pid = answer.command;
	res->init = answer.init;
	res->elsewhere = answer.elsewhere;
	if (err == 0 && terminal >= 0)
		err = take_terminal(res, terminal);
	fault->enforcing = answer.enforcing;
	if (err < 0)
		fault->step = answer.step;
	return err;
}

static int
start_plain(const struct spawn_request *r, struct child_ends *c,
    struct spawn_result *res, struct spawn_fault *fault)
{
	volatile struct spawn_fault failed = { 0 };
	int fds[2] = { -1, -1 };

	if (r->may_wait && pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	res->starting = fds[0];
	c->fault = fds[1];
	res->pid = start_child(r, c, &failed);
	if (failed.err < 0)
		fault->step = failed.step;
	return res->pid < 0 ? res->pid : failed.err;
}

int
spawn(const struct spawn_request *r, struct spawn_result *res,
    struct spawn_fault *fault)
{
	struct child_ends c = { -1, -1, -1, -1 };
	int err;

	*res = (struct spawn_result){
		.pid = -1, .in = -1, .out = -1, .err = -1, .starting = -1
	};
	*fault = (struct spawn_fault){ .step = r->tty ? "pseudo terminal"
						      : "pipes" };
	err = r->tty ? open_tty(r, res, &c) : open_pipes(r, res, &c);
	if (err == 0) {
		fault->step = "fork";
		err = r->sandbox != NULL ? start_inside(r, &c, res, fault)
					 : start_plain(r, &c, res, fault);
	}
	close_all(
	    (int[]){ c.in != r->null_fd ? c.in : -1, c.out, c.err, c.fault },
	    4);
	if (err < 0)
		close_all(
		    (int[]){ res->in, res->out, res->err, res->starting }, 4);
	return fault->err = err;
}

char **
spawn_candidates(const char *program, const char *path)
{
	size_t n = 1, bytes = 0, len = strlen(program);
	char **list, *at;

	if (path == NULL)
		path = _PATH_DEFPATH;
	if (strchr(program, '/') != NULL) {
		list = xmalloc(2 * sizeof(char *) + len + 1);
		list[0] = memcpy(list + 2, program, len + 1);
		list[1] = NULL;
		return list;
	}
	for (const char *p = path; *p != '\0'; p++)
		n += *p == ':';
	bytes = strlen(path) + n * (len + 2);
	list = xmalloc((n + 1) * sizeof(char *) + bytes);
	at = (char *)(list + n + 1);
	n = 0;
	while (*path != '\0') {
		size_t dir = strcspn(path, ":");

		list[n++] = at;
		memcpy(at, path, dir);
		at += dir;
		if (dir > 0)
			*at++ = '/';
		memcpy(at, program, len + 1);
		at += len + 1;
		path += dir;
		if (*path == ':' && *++path == '\0') {
			/* A trailing colon names the working directory too. */
			list[n++] = at;
			memcpy(at, program, len + 1);
			at += len + 1;
		}
	}
	list[n] = NULL;
	return list;
}
