/* SPDX-License-Identifier: ISC */
/*
 * The process that systemd knows as execd.service. It hears nobody, and starts
 * a broker below itself. For a reload it starts another one, which reads the
 * configuration while the first still serves, and takes its place if all is
 * well. So a reload is no restart: no moment without a broker, and a
 * configuration that will not do changes nothing.
 *
 * A broker that has served and dies is replaced by the installed one, and if
 * that one does not come to serve, by the program that served last. Otherwise,
 * if the only broker ends, so does this process, in the same way, and what
 * follows is systemd's.
 */
#include <sys/signalfd.h>

#include "base.h"
#include "broker_main.h"
#include "children.h"
#include "control_spawn.h"
#include "exit_code.h"
#include "signals.h"

/* For the broker: the descriptor on which it asks for a reload, and a mask of
 * enum begin_flag for root's execd. A keeper of an earlier release writes no
 * mask, and takes each byte for a reload. */
#define KEPT_VARIABLE "EXECD_KEEPER"

/* What the broker writes. */
enum { ASKS_RELOAD = 0, SERVES = 's' };

struct child {
	pid_t pid;   /* 0: none */
	int program; /* an O_PATH descriptor of what it executes, or -1 */
	int said;    /* its end of a pipe is in the broker; -1: there is none */
	bool served;
	uint32_t flags; /* enum begin_flag */
};

#define CHILD_NONE                                                             \
	{                                                                      \
		.program = -1, .said = -1,                                     \
	}

struct keeper {
	char **argv;
	struct child serving, next;
	int served; /* the program that served last, as child.program */
	int signals;
	bool again; /* another reload was asked for meanwhile */
	bool leaving;
};

/* --- in the broker -------------------------------------------------------- */

static int ask_fd = -1;
static bool says_served;
static uint32_t begin_flags;

bool
keeper_found(void)
{
	const char *text = getenv(KEPT_VARIABLE);

	ask_fd = text != NULL ? atoi(text) : -1;
	says_served = text != NULL && sscanf(text, "%*d %u", &begin_flags) == 1;
	unsetenv(KEPT_VARIABLE);
	if (ask_fd > STDERR_FILENO && fcntl(ask_fd, F_SETFD, FD_CLOEXEC) == 0)
		return true;
	ask_fd = -1;
	return false;
}

static void
say(char what)
{
	/* A pipe that is full has been asked often enough. */
	if (write(ask_fd, &what, 1) < 0 && errno != EAGAIN)
		log_error(-errno, "telling the keeper");
}

void
keeper_ask_reload(void)
{
	say(ASKS_RELOAD);
}

uint32_t
keeper_flags(void)
{
	return begin_flags;
}

void
keeper_tell_serving(void)
{
	if (says_served)
		say(SERVES);
}

/* --- the keeper ----------------------------------------------------------- */

/* What systemd passes on by pid is for the broker. */
static void
become_broker(const struct keeper *k, const struct child *c, int ask)
{
	char number[32];

	children_reset_signals();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(number, sizeof(number), "%d", (int)getpid());
	if (getenv("LISTEN_PID") != NULL)
		setenv("LISTEN_PID", number, 1);
	if (getenv("WATCHDOG_PID") != NULL)
		setenv("WATCHDOG_PID", number, 1);
	fcntl(ask, F_SETFD, 0);
	snprintf(number, sizeof(number), "%d %u", ask, c->flags);
	setenv(KEPT_VARIABLE, number, 1);
	fexecve(c->program, k->argv, environ);
	log_error(-errno, "executing %s", k->argv[0]);
	_exit(EXIT_FAILED);
}

static void
forget(struct child *c)
{
	if (c->program >= 0)
		close(c->program);
	if (c->said >= 0)
		close(c->said);
	*c = (struct child)CHILD_NONE;
}

/* Starts the installed program, which may be another than this one; with
 * BEGIN_PREVIOUS, or if there is none, the program that served last. */
static void
start(const struct keeper *k, struct child *c, uint32_t flags)
{
	int pipe[2];

	*c = (struct child)CHILD_NONE;
	if (!(flags & BEGIN_PREVIOUS))
		c->program = open(k->argv[0], O_PATH | O_CLOEXEC);
	if (c->program < 0 && k->served >= 0) {
		log_warn(0,
		    "%s did not come to serve: starting the previous one",
		    k->argv[0]);
		c->program = fcntl(k->served, F_DUPFD_CLOEXEC, 0);
		flags |= BEGIN_PREVIOUS;
	}
	c->flags = flags;
	if (pipe2(pipe, O_NONBLOCK | O_CLOEXEC) == 0) {
		c->said = pipe[0];
		c->pid = fork();
		if (c->pid == 0)
			become_broker(k, c, pipe[1]);
		close(pipe[1]);
	}
	if (c->pid > 0)
		return;
	log_error(-errno, "starting the broker");
	forget(c);
}

static void
reload(struct keeper *k)
{
	k->again = k->next.pid != 0;
	if (!k->again)
		start(k, &k->next, 0);
}

/* Takes what that broker wrote. */
static void
hear(struct keeper *k, struct child *c)
{
	bool asks = false, serves = false;
	char bytes[16];
	ssize_t n;

	if (c->said < 0)
		return;
	n = read(c->said, bytes, sizeof(bytes));
	for (ssize_t i = 0; i < n; i++) {
		asks |= bytes[i] == ASKS_RELOAD;
		serves |= bytes[i] == SERVES;
	}
	if (n == 0)
		close(steal_fd(&c->said));
	if (serves && !c->served) {
		if (k->served >= 0)
			close(k->served);
		k->served = fcntl(c->program, F_DUPFD_CLOEXEC, 0);
		c->served = true;
	}
	if (asks)
		reload(k);
}

/* Ends as the broker did. */
static void __attribute__((noreturn)) end_like(int status)
{
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		sigprocmask(SIG_SETMASK, &(sigset_t){ { 0 } }, NULL);
		raise(WTERMSIG(status));
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED);
}

/* Nobody stops this unit, and its broker failed. One that has just begun dies
 * of the signal that stops it. */
static bool
is_to_go_on(const struct keeper *k, int status)
{
	int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	return !k->leaving && status != 0 && sig != SIGTERM && sig != SIGINT;
}

/* The only broker ended. */
static void
replace(struct keeper *k, const struct child *ended, int status)
{
	uint32_t flags = BEGIN_AGAIN | (ended->served ? 0 : BEGIN_PREVIOUS);

	if (is_to_go_on(k, status) && k->served >= 0 &&
	    (ended->served || !(ended->flags & BEGIN_PREVIOUS)))
		start(k, &k->serving, flags);
	if (k->serving.pid == 0)
		end_like(status);
}

/* Root's execd makes the next broker the serving one when the first is gone. A
 * next one that ends has refused its configuration, and said so. */
static void
take_end(struct keeper *k, pid_t pid, int status)
{
	struct child ended = k->serving;

	if (pid == k->next.pid)
		forget(&k->next);
	if (pid == k->serving.pid) {
		k->serving = k->next;
		k->next = (struct child)CHILD_NONE;
		if (k->serving.pid == 0)
			replace(k, &ended, status);
		else if (k->leaving)
			kill(k->serving.pid, SIGTERM);
		forget(&ended);
	}
	if (k->again && k->next.pid == 0)
		reload(k);
}

static void
reap(struct keeper *k)
{
	pid_t pid;
	int status;

	hear(k, &k->serving);
	hear(k, &k->next);
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		take_end(k, pid, status);
}

static void
take_signal(struct keeper *k)
{
	struct signalfd_siginfo info;

	while (read(k->signals, &info, sizeof(info)) == sizeof(info)) {
		k->leaving |= info.ssi_signo == SIGTERM;
		if (info.ssi_signo == SIGHUP)
			reload(k);
		else if (info.ssi_signo == SIGCHLD)
			reap(k);
		else
			kill(k->serving.pid, (int)info.ssi_signo);
	}
}

static int
prepare(struct keeper *k)
{
	static const int signals[] = { SIGHUP, SIGCHLD, SIGTERM, SIGINT,
		SIGUSR1 };
	sigset_t set;

	signals_ignore_unused(true);
	sigemptyset(&set);
	for (size_t i = 0; i < nitems(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	k->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return k->signals < 0 ? -errno : 0;
}

int
keeper_run(char **argv)
{
	struct keeper k = { .argv = argv, .next = CHILD_NONE, .served = -1 };
	int err;

	log_init("execd-broker", LOG_LEVEL_INFO);
	log_name_by_journal();
	err = prepare(&k);
	if (err < 0)
		log_fatal_errno(err, "the keeper of brokers");
	start(&k, &k.serving, 0);
	if (k.serving.pid == 0)
		return EXIT_FAILED;
	for (;;) {
		struct pollfd fds[] = { { k.signals, POLLIN, 0 },
			{ k.serving.said, POLLIN, 0 },
			{ k.next.said, POLLIN, 0 } };

		if (poll(fds, nitems(fds), -1) < 0 && errno != EINTR)
			log_fatal_errno(-errno, "poll");
		hear(&k, &k.serving);
		hear(&k, &k.next);
		take_signal(&k);
	}
}
