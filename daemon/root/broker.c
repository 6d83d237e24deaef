/* SPDX-License-Identifier: ISC */
/*
 * The broker's process: started, asked whether it is alive, and replaced.
 * Sessions do not end with it: their runners are children of this process,
 * and the next broker gets the channels to them.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "log.h"
#include "programs.h"
#include "root.h"
#include "seqpacket.h"
#include "util.h"

#define RESTART_MS     200   /* after one that had served */
#define RESTART_MAX_MS 10000 /* after several that had not */
#define PING_MS	       2000  /* from its answer to the next question */
#define ANSWER_MS      8000  /* then it is dead: 10 s after its last word */
#define BEGIN_MS       30000 /* to read its configuration */

/* systemd's sockets begin there, and the broker finds them where it would
 * find them without this program in between (sd_listen_fds(3)). */
#define FIRST_LISTEN_FD 3

static int
listen_fds(void)
{
	const char *n = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");

	if (n == NULL || pid == NULL || atoi(pid) != (int)getppid())
		return 0;
	return atoi(n) > 0 ? atoi(n) : 0;
}

/* What systemd said to this program, it says to the broker. */
static void
set_environment(int channel)
{
	char text[32];

	if (listen_fds() > 0) {
		snprintf(text, sizeof(text), "%d", (int)getpid());
		setenv("LISTEN_PID", text, 1);
	}
	unsetenv("WATCHDOG_PID");
	snprintf(text, sizeof(text), "%d", channel);
	setenv(SPAWN_CHANNEL_VARIABLE, text, 1);
}

static void __attribute__((noreturn))
child(int program, int channel, pid_t parent)
{
	int n = FIRST_LISTEN_FD + listen_fds();

	child_reset_signals();
	setsid();
	/* Root that is gone has no broker: it would serve nobody. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		log_fatal("root's execd is gone");
	for (int fd = FIRST_LISTEN_FD; fd < n; fd++)
		fcntl(fd, F_SETFD, 0);
	/* The channel may take its place. */
	program = fcntl(program, F_DUPFD_CLOEXEC, n + 1);
	if (channel != n && dup2(channel, n) < 0)
		log_fatal_errno(-errno, "the spawn channel");
	fcntl(n, F_SETFD, 0);
	set_environment(n);
	fexecve(program, root.argv, environ);
	log_fatal_errno(-errno, "execd-broker");
}

static void
take_channel(int fd)
{
	root.channel = fd;
	root.state = ORDERS_NEW;
	root.started_ms = now_ms();
	root.ping_ms = now_ms() + PING_MS;
	root.answer_ms = 0;
	runners_tell_again();
}

int
broker_start(void)
{
	char missing[PATH_MAX];
	_cleanup_close_ int program =
	    programs_open_one(INSTALLED_BROKER, missing);
	int pair[2], err;
	pid_t parent = getpid();

	if (program < 0) {
		log_error(program, "%s", missing);
		return program;
	}
	err = seqpacket_pair(pair);
	if (err < 0)
		return err;
	root.broker = fork();
	if (root.broker == 0)
		child(program, pair[1], parent);
	close(pair[1]);
	if (root.broker < 0) {
		root.broker = 0;
		close(pair[0]);
		return -errno;
	}
	take_channel(pair[0]);
	return 0;
}

/* Only root may give orders to root, and only one broker at a time. */
void
broker_accept(void)
{
	int fd =
	    accept4(root.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	socklen_t len = sizeof(struct ucred);
	struct ucred peer = { .uid = (uid_t)-1 };

	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
	    peer.uid != 0 || root.channel >= 0) {
		log_error(0,
		    "process %d of user %u: it is no broker, or not "
		    "the only one",
		    (int)peer.pid, (unsigned)peer.uid);
		close(fd);
		return;
	}
	take_channel(fd);
}

static void
hang_up(void)
{
	if (root.channel >= 0)
		close(steal_fd(&root.channel));
	if (root.events >= 0)
		close(steal_fd(&root.events));
}

void
broker_lose(const char *why)
{
	if (root.broker > 0 && why != NULL)
		log_error(0, "broker %d %s: killing it", (int)root.broker, why);
	hang_up();
	if (root.broker > 0)
		kill(root.broker, SIGKILL);
}

/* One that never served has told why, or could not; nothing is lost. */
static void
give_up(int status)
{
	root.stopping = true;
	if (WIFSIGNALED(status))
		log_error(0, "broker: killed by signal %d before it served",
		    WTERMSIG(status));
	if (root.exit_code < 0)
		root.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void
plan_restart(int status)
{
	int64_t wait = RESTART_MS;

	if (WIFSIGNALED(status))
		log_error(0, "broker: killed by signal %d; sessions go on",
		    WTERMSIG(status));
	else
		log_error(0, "broker: exited with status %d; sessions go on",
		    WEXITSTATUS(status));
	for (uint32_t i = 0; i < root.failures && wait < RESTART_MAX_MS; i++)
		wait *= 2;
	root.failures++;
	root.restart_ms = now_ms() + (root.failures > 1 ? wait : 0);
}

/* They may wait to be read when it has ended. */
static void
hear_last_words(void)
{
	struct pollfd heard = { .fd = root.channel, .events = POLLIN };

	while (root.channel >= 0 && poll(&heard, 1, 0) > 0 && orders_take())
		continue;
}

static void
stop_for(int sig)
{
	log_info("signal %d: stopping", sig);
	root.stopping = true;
	root.exit_code = 0;
}

bool
broker_reap(pid_t pid, int status)
{
	if (pid != root.broker)
		return false;
	hear_last_words();
	root.broker = 0;
	hang_up();
	if (root.stopping)
		return true;
	/* One that has just begun dies of the signal before it can take it. */
	if (root.stop_signal != 0)
		stop_for(root.stop_signal);
	else if (!root.served || !root.replaceable)
		give_up(status);
	else
		plan_restart(status);
	return true;
}

void
broker_is_alive(void)
{
	root.answer_ms = 0;
	root.ping_ms = now_ms() + PING_MS;
}

static int64_t
ask(int64_t now)
{
	if (root.events < 0 && (!root.served || root.listener >= 0))
		return -1; /* whoever started it sees what it does */
	if (root.events < 0 && now < root.started_ms + BEGIN_MS)
		return root.started_ms + BEGIN_MS;
	if (root.events < 0) {
		broker_lose("does not begin");
		return -1;
	}
	if (root.answer_ms > 0 && now < root.answer_ms)
		return root.answer_ms;
	if (root.answer_ms > 0) {
		broker_lose("does not answer");
		return -1;
	}
	if (now < root.ping_ms)
		return root.ping_ms;
	root.answer_ms = now + ANSWER_MS;
	orders_tell(root.events, SPAWN_PING, NULL, NULL, 0);
	return root.answer_ms;
}

int64_t
broker_watch(int64_t now)
{
	int err;

	if (root.stopping)
		return -1;
	if (root.channel >= 0)
		return ask(now);
	if (root.broker > 0 || root.listener >= 0)
		return -1;
	if (now < root.restart_ms)
		return root.restart_ms;
	err = broker_start();
	if (err < 0) {
		log_error(err, "starting the broker");
		root.restart_ms = now + RESTART_MAX_MS;
		return root.restart_ms;
	}
	return -1;
}

void
broker_signal(int sig)
{
	if (root.broker > 0) {
		root.stop_signal = sig == SIGHUP ? root.stop_signal : sig;
		kill(root.broker, sig);
		return;
	}
	if (sig == SIGHUP)
		return; /* the next one reads the configuration anyhow */
	stop_for(sig);
}
