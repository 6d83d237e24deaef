/* SPDX-License-Identifier: ISC */
/*
 * The process that systemd knows as execd.service. It hears nobody, and starts
 * a broker below itself. For a reload it starts another one, which reads the
 * configuration while the first still serves, and takes its place if all is
 * well. So a reload is no restart: no moment without a broker, and a
 * configuration that will not do changes nothing.
 *
 * If the only broker ends, so does this process, in the same way, and what
 * follows is systemd's.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker_main.h"
#include "children.h"
#include "exit_code.h"
#include "log.h"
#include "util.h"

/* For the broker: the descriptor on which it asks for a reload. */
#define KEPT_VARIABLE "EXECD_KEEPER"

struct keeper {
	char **argv;
	pid_t serving, next; /* 0: none */
	int signals;
	int asked[2]; /* a pipe */
	bool again;   /* another reload was asked for meanwhile */
};

/* --- in the broker -------------------------------------------------------- */

static int ask_fd = -1;

bool
keeper_found(void)
{
	const char *text = getenv(KEPT_VARIABLE);

	ask_fd = text != NULL ? atoi(text) : -1;
	unsetenv(KEPT_VARIABLE);
	if (ask_fd > STDERR_FILENO && fcntl(ask_fd, F_SETFD, FD_CLOEXEC) == 0)
		return true;
	ask_fd = -1;
	return false;
}

void
keeper_ask_reload(void)
{
	/* A pipe that is full has been asked often enough. */
	if (write(ask_fd, "", 1) < 0 && errno != EAGAIN)
		log_error(-errno, "asking for a reload");
}

/* --- the keeper ----------------------------------------------------------- */

/* What systemd passes on by pid is for the broker. */
static void
become_broker(const struct keeper *k)
{
	char number[16];

	children_reset_signals();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(number, sizeof(number), "%d", (int)getpid());
	if (getenv("LISTEN_PID") != NULL)
		setenv("LISTEN_PID", number, 1);
	if (getenv("WATCHDOG_PID") != NULL)
		setenv("WATCHDOG_PID", number, 1);
	snprintf(number, sizeof(number), "%d", k->asked[1]);
	setenv(KEPT_VARIABLE, number, 1);
	/* The installed program, which may be another than this one. */
	execv(k->argv[0], k->argv);
	log_error(-errno, "executing %s", k->argv[0]);
	_exit(EXIT_FAILED);
}

static pid_t
start(const struct keeper *k)
{
	pid_t pid = fork();

	if (pid == 0)
		become_broker(k);
	if (pid < 0)
		log_error(-errno, "starting the broker");
	return pid > 0 ? pid : 0;
}

static void
reload(struct keeper *k)
{
	k->again = k->next != 0;
	if (!k->again)
		k->next = start(k);
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

/* Root's execd makes the next broker the serving one when the first is gone. A
 * next one that ends has refused its configuration, and said so. */
static void
reap(struct keeper *k)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == k->next)
			k->next = 0;
		if (pid == k->serving) {
			k->serving = k->next;
			k->next = 0;
		}
		if (k->serving == 0)
			end_like(status);
		if (k->again && k->next == 0)
			reload(k);
	}
}

static void
take_signal(struct keeper *k)
{
	struct signalfd_siginfo info;

	while (read(k->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			reload(k);
		else if (info.ssi_signo == SIGCHLD)
			reap(k);
		else
			kill(k->serving, (int)info.ssi_signo);
	}
}

static int
prepare(struct keeper *k)
{
	static const int signals[] = { SIGHUP, SIGCHLD, SIGTERM, SIGINT,
		SIGUSR1 };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < nitems(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	k->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (k->signals < 0 || pipe2(k->asked, O_NONBLOCK) < 0 ||
	    fcntl(k->asked[0], F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	return 0;
}

int
keeper_run(char **argv)
{
	struct keeper k = { .argv = argv };
	struct pollfd fds[2];
	char bytes[16];
	int err;

	log_init("execd-broker", LOG_LEVEL_INFO);
	log_name_by_journal();
	err = prepare(&k);
	if (err < 0)
		log_fatal_errno(err, "the keeper of brokers");
	k.serving = start(&k);
	if (k.serving == 0)
		return EXIT_FAILED;
	fds[0] = (struct pollfd){ k.signals, POLLIN, 0 };
	fds[1] = (struct pollfd){ k.asked[0], POLLIN, 0 };
	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			log_fatal_errno(-errno, "poll");
		take_signal(&k);
		if (read(k.asked[0], bytes, sizeof(bytes)) > 0)
			reload(&k);
	}
}
