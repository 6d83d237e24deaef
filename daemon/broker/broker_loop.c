/* SPDX-License-Identifier: ISC */
/*
 * The broker's loop: signals, children, deadlines.
 */
#include "base.h"
#include "broker_main.h"

#include <sys/signalfd.h>

#include "broker_health.h"
#include "broker_options.h"
#include "broker_state.h"
#include "conf.h"
#include "ctl_socket.h"
#include "exit_code.h"
#include "frontend_child.h"
#include "requests.h"
#include "session_registry.h"
#include "spawn_client.h"
#include "systemd.h"

/* The time that the front-end has to tell its clients when everything else has
 * ended. */
#define FRONTEND_EXIT_MS 1500

/* The time that systemd gives beyond that of a drain, for the end of what is
 * left then. */
#define STOP_MS 90000

static void broker_drain(struct broker *m);

static void broker_stop(struct broker *m, int exit_code);

/* Another broker takes over the sessions. */
static void
broker_leave(struct broker *m)
{
	if (m->stopping)
		return;
	m->stopping = m->leaving = true;
	m->exit_code = EXIT_STOPPED;
	session_spare_drop_all(m);
	frontend_stop(m);
	m->frontend->restart_ms = now_ms() + FRONTEND_EXIT_MS;
}

/* If the sessions belong to root's execd in another unit, only this broker
 * ends, and the next one finds them. */
static void
stop_service(struct broker *m)
{
	log_info("stopping; %zu sessions go on", m->sessions->by_id.count);
	notify("STOPPING=1");
	drain_forget_times();
	broker_leave(m);
}

/* Another broker reads the configuration. Root starts it, or in a unit of its
 * own the keeper; root then passes on what came of it. */
static void
reload(struct broker *m)
{
	if (m->conf->path == NULL) {
		log_info("reload: there is no configuration file");
		return;
	}
	spawn_reload();
	if (m->options->sessions != NULL)
		keeper_ask_reload();
}

static void
take_stop(struct broker *m, int sig)
{
	if (sig == SIGTERM && m->leaving)
		return; /* root's execd, or the keeper, tells the next one */
	if (sig == SIGTERM && m->options->sessions != NULL) {
		stop_service(m);
	} else if (sig == drain_signal(m) && !m->draining) {
		broker_drain(m);
	} else {
		log_info("signal %d: stopping", sig);
		broker_stop(m, EXIT_STOPPED);
	}
}

/* What comes on standard input has no meaning; that it ends has one. */
static void
input_ready(evutil_socket_t fd, short what, void *arg)
{
	struct broker *m = arg;
	char ignored[4096];
	ssize_t n = read(fd, ignored, sizeof(ignored));

	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	log_info("standard input has ended: stopping as at signal %d", SIGTERM);
	watch_close(&m->input);
	take_stop(m, SIGTERM);
}

/* A file and /dev/null are at their end from the beginning. */
static bool
can_end(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 &&
	       (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || isatty(fd));
}

/* With stdio the connection is the input, and execd ends with it anyway. */
static int
watch_input(struct broker *m)
{
	int fd;

	if (!m->options->exit_on_stdin_close || m->stdio)
		return 0;
	if (!can_end(STDIN_FILENO)) {
		log_error(0, "--exit-on-stdin-close: standard input is no "
			     "pipe, socket or terminal");
		return -EPERM;
	}
	fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 4);
	return fd < 0 ? -errno
		      : watch_add(&m->input, fd, EV_READ, input_ready, m);
}

static void
signals_ready(evutil_socket_t fd, short what, void *arg)
{
	struct broker *m = arg;
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			reload(m);
		else if (info.ssi_signo != SIGUSR1)
			take_stop(m, (int)info.ssi_signo);
		else if (!broker_is_going(m))
			drain_begin(m, info.ssi_uid);
	}
}

static int
watch_signals(struct broker *m)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	return watch_add(&m->signals, fd, EV_READ, signals_ready, m);
}

/* Ends everything. The loop returns when all children are gone. The front-end
 * stays until the last session has ended, so that each client hears why. */
static void
broker_stop(struct broker *m, int exit_code)
{
	if (m->stopping)
		return;
	notify("STOPPING=1");
	m->stopping = true;
	m->exit_code = exit_code;
	if (m->draining) {
		m->drain_until_ms = now_ms();
		drain_keep_times(m);
	}
	for (size_t i = 0; i < m->conf->nlisteners; i++)
		listener_close(m->conf->listeners[i]);
	frontend_drain(m);
	session_spare_drop_all(m);
	session_terminate_all(m, "the server is stopping");
}

/* What follows has its time beyond systemd's TimeoutStopSec=. */
static void
notify_stopping(uint64_t ms)
{
	notify("STOPPING=1\nEXTEND_TIMEOUT_USEC=%llu",
	    (unsigned long long)(ms + STOP_MS) * 1000);
}

/* As drain_begin(); if the operator has drained execd, its notice is meant.
 * False: no notice is given, or it was. */
static bool
give_notice(struct broker *m)
{
	uint64_t ms = m->drain.drained ? drain_notice_ms(m)
				       : m->conf->limits.drain_notice_ms;

	if (ms == 0 || m->notice_until_ms > 0)
		return false;
	m->notice_until_ms = now_ms() + (int64_t)ms;
	drain_keep_times(m);
	log_info("signal %d: new sessions are opened for another %llu ms",
	    drain_signal(m), (unsigned long long)ms);
	notify_stopping(ms);
	notify("STATUS=new sessions are opened for another %llu ms",
	    (unsigned long long)ms);
	frontend_drain(m);
	return true;
}

/* Those whose runner has not answered this broker yet may be there, too. */
static size_t
count_sessions(const struct broker *m)
{
	return m->sessions->by_id.count + m->sessions->unknown;
}

/* Opens no new sessions, and gives open ones time. A broker that leaves does
 * nothing of it, and tells the next one. */
static void
broker_drain(struct broker *m)
{
	uint32_t ms = m->conf->limits.drain_timeout_ms;

	if (give_notice(m))
		return;
	if (!m->leaving && (ms == 0 || count_sessions(m) == 0)) {
		log_info("signal %d: stopping", drain_signal(m));
		broker_stop(m, EXIT_STOPPED);
		return;
	}
	m->draining = true;
	m->drain_until_ms = now_ms() + ms;
	drain_keep_times(m);
	log_info("signal %d: no new sessions; %zu may go on for %u ms",
	    drain_signal(m), count_sessions(m), ms);
	notify_stopping(ms);
	session_spare_drop_all(m);
	frontend_drain(m);
}

/* Stops when the last session or the time is over. Returns the deadline
 * or -1. */
static int64_t
finish_drain(struct broker *m, int64_t now)
{
	if (m->notice_until_ms > 0 && !m->draining && !m->stopping) {
		if (now < m->notice_until_ms)
			return m->notice_until_ms;
		broker_drain(m);
	}
	if (!m->draining || m->stopping)
		return -1;
	if (count_sessions(m) > 0 && now < m->drain_until_ms)
		return m->drain_until_ms;
	log_info("drained: %zu sessions are ended", count_sessions(m));
	broker_stop(m, EXIT_STOPPED);
	return -1;
}

/* Starts new helpers after one died. Returns when to call it again, or -1. */
static int64_t
restart_helpers(struct broker *m, int64_t now)
{
	if (m->helpers->restart_ms == 0 || m->stopping)
		return -1;
	if (now < m->helpers->restart_ms)
		return m->helpers->restart_ms;
	m->helpers->restart_ms = 0;
	frontend_reload(m);
	return -1;
}

/* Before restart_ms the front-end ends by itself: when its channel is closed,
 * or when this broker leaves and its last client has a session. */
static bool
is_over(struct broker *m)
{
	bool open = watch_fd(&m->frontend->control) >= 0;
	int64_t now = now_ms();

	if (!m->stopping || (m->sessions->by_pid.count > 0 && !m->leaving))
		return false;
	if (m->frontend->pid == 0)
		return true;
	if ((open && !m->leaving) || now >= m->frontend->restart_ms) {
		if (open && !m->leaving)
			frontend_stop(m);
		if (open)
			frontend_hang_up(m);
		else
			spawn_kill(m->frontend->pid);
		m->frontend->restart_ms = now + FRONTEND_EXIT_MS;
	}
	watch_turn_at(m->frontend->restart_ms);
	return false;
}

static void
start_frontend_when_due(struct broker *m, int64_t now)
{
	int err;

	if (m->stopping || m->frontend->state != FRONTEND_DOWN ||
	    m->frontend->pid != 0 || session_adopt_waits(m, now))
		return;
	err = now < m->frontend->restart_ms ? 0 : frontend_start(m);
	if (err < 0) {
		log_error(err, "starting the front-end");
		m->frontend->restart_ms = now + 1000;
	}
	watch_turn_at(m->frontend->restart_ms);
}

/* Writes lines that waited for room. Returns when to call it again, or -1. */
static int64_t
deliver_log(int64_t now)
{
	return log_flush() ? -1 : now + LOG_RETRY_MS;
}

/* --- reports of the broker's parts -------------------------------------- */

static void
reaped(struct broker *m, pid_t pid, int status)
{
	if (!frontend_reap(m, pid, status) && !helpers_reap(m, pid, status))
		session_reap(m, pid, status);
}

static const char *
request(struct broker *m, const uint8_t *packet, size_t len, int *fd)
{
	int err = request_take(m, packet, len, fd);

	return err < 0 ? request_violation(err) : NULL;
}

const struct broker_events broker_events = {
	.stop = broker_stop,
	.leave = broker_leave,
	.reload = reload,
	.reloaded = ctl_answer_reload,
	.serving = keeper_tell_serving,
	.reaped = reaped,
	.request = request,
	.frontend_gone = requests_forget,
	.session_adopted = requests_session_adopted,
	.session_probed = requests_probed,
	.account_known = requests_account_known,
	.session_ended = requests_session_ended,
};

/* Whether systemd need not start this unit anew. Root's execd may be another
 * unit's. */
static bool
is_well(const struct broker *m, int64_t now)
{
	return broker_health_of_parts(m, now) == NULL &&
	       (m->options->sessions != NULL || !spawn_is_silent(now));
}

int
broker_run(struct broker *m)
{
	int err;

	if ((err = watch_signals(m)) < 0 || (err = watch_input(m)) < 0) {
		log_error(err, "event loop");
		return EXIT_FAILED;
	}
	for (;;) {
		int64_t now = now_ms();

		start_frontend_when_due(m, now);
		ctl_go_on(m);
		watch_turn_at(finish_drain(m, now));
		watch_turn_at(restart_helpers(m, now));
		watch_turn_at(drain_watch(m, now));
		watch_turn_at(session_audit_watch(m, now));
		watch_turn_at(frontend_watch(m, now));
		watch_turn_at(notify_alive(now, is_well(m, now)));
		watch_turn_at(deliver_log(now));
		watch_turn_at(load_watch(m, now));
		watch_turn_at(session_idle_expire(m, now));
		if (is_over(m))
			return m->exit_code;
		watch_turn();
	}
}
