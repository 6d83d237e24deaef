/*
 * The front-end's process: started, listened to, ended, and started again. It
 * is trusted with nothing: what requests.c refuses means that it is
 * compromised, and then it is killed and a fresh one takes over.
 */
#include "frontend.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "log.h"
#include "monitor.h"
#include "requests.h"
#include "seqpacket.h"
#include "util.h"

#define QUEUE_MAX	  65536 /* messages waiting for a stopped front-end */
#define FAILURES_MAX	  5	/* ends before READY, then execd gives up */
#define RESTART_AFTER_MS  1000	/* if it lived shorter than this */
#define REQUESTS_PER_WAKE 64	/* then the others have their turn */

void
frontend_init(struct frontend *f)
{
	*f = (struct frontend){ .state = FRONTEND_DOWN, .control.fd = -1 };
	TAILQ_INIT(&f->queue);
}

static void
outgoing_free(struct frontend *f, struct outgoing *o)
{
	TAILQ_REMOVE(&f->queue, o, link);
	f->queued--;
	buf_clear(&o->message);
	if (o->fd >= 0)
		close(o->fd);
	free(o);
}

static void
condemn(struct frontend *f, const char *why)
{
	log_error(0, "front-end %d: %s: killing it", (int)f->pid, why);
	kill(f->pid, SIGKILL);
}

static void
enqueue(struct frontend *f, struct buf *b, int fd)
{
	struct outgoing *o;

	if (f->queued == QUEUE_MAX) {
		condemn(f, "does not read its control channel");
		buf_clear(b);
		if (fd >= 0)
			close(fd);
		return;
	}
	o = xcalloc(1, sizeof(*o));
	o->message = *b;
	o->fd = fd;
	TAILQ_INSERT_TAIL(&f->queue, o, link);
	f->queued++;
	source_set_events(&f->control, EPOLLIN | EPOLLOUT);
}

static void
flush_queue(struct frontend *f)
{
	struct outgoing *o;

	while ((o = TAILQ_FIRST(&f->queue)) != NULL) {
		if (seqpacket_send(f->control.fd, o->message.data,
			o->message.len, &o->fd, o->fd >= 0) == -EAGAIN)
			return;
		outgoing_free(f, o);
	}
	source_set_events(&f->control, EPOLLIN);
}

/* Takes fd (or -1) over. A front-end that is gone loses it. */
void
frontend_send(
    struct frontend *f, enum control_type type, const void *payload, int fd)
{
	struct buf b;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	if (f->control.fd >= 0 &&
	    (f->queued > 0 || seqpacket_send(f->control.fd, b.data, b.len, &fd,
				  fd >= 0) == -EAGAIN)) {
		enqueue(f, &b, fd);
		return;
	}
	buf_clear(&b);
	if (fd >= 0)
		close(fd);
}

static void
control_ready(struct source *source, uint32_t events)
{
	struct frontend *f = SOURCE_OWNER(source, struct frontend, control);
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds = 0;
	ssize_t n = -EAGAIN;
	int err = 0;

	if (events & EPOLLOUT)
		flush_queue(f);
	for (int i = 0; i < REQUESTS_PER_WAKE && err == 0; i++) {
		n = seqpacket_recv(
		    f->control.fd, packet, sizeof(packet), fds, &nfds);
		if (n <= 0)
			break;
		if (nfds > 0)
			err = -EBADMSG;
		else
			err = request_take(&monitor, packet, (size_t)n);
		while (nfds > 0)
			close(fds[--nfds]);
		if (f->control.fd < 0)
			return;
	}
	if (n == -EMSGSIZE)
		err = -EBADMSG;
	if (err < 0)
		condemn(f, request_violation(err));
	if (err < 0 || n == 0 || (n < 0 && n != -EAGAIN && n != -EMSGSIZE))
		source_remove(&f->control);
}

static void
send_configuration(struct monitor *m)
{
	const struct options *o = m->options;
	struct control_configure c = {
		.uid = m->frontend_uid,
		.gid = m->frontend_gid,
		.drop = m->root,
		.authenticate = m->credentials.mode != AUTH_NONE,
		.ping_interval_ms = o->ping_interval_ms,
		.pre_auth_deadline_ms = o->pre_auth_deadline_ms,
		.max_connections = o->max_connections,
		.max_frame_bytes = o->max_frame_bytes,
		.max_message_bytes = o->max_message_bytes,
		.listeners = (uint32_t)m->nlisteners,
	};
	int fds[SEQPACKET_FDS_MAX];
	size_t n = 0;
	struct buf b;

	for (size_t i = 0; i < m->nlisteners; i++) {
		c.kinds[i] = m->listeners[i].kind;
		fds[n++] = m->listeners[i].fd;
		if (m->listeners[i].kind == LISTENER_STDIO)
			fds[n++] = m->listeners[i].out_fd;
	}
	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, MON_EV_CONFIGURE, &c);
	seqpacket_send(m->frontend.control.fd, b.data, b.len, fds, n);
	buf_clear(&b);
}

static void __attribute__((noreturn))
frontend_child(const struct monitor *m, int control_fd)
{
	char *argv[] = { (char *)(uintptr_t) "execd-frontend", NULL };
	char *env[3] = { NULL };
	int n = 0;

	if (m->options->debug)
		env[n++] = (char *)(uintptr_t) "EXECD_DEBUG=1";
	if (getenv("JOURNAL_STREAM") != NULL)
		env[n++] = (char *)(uintptr_t) "JOURNAL_STREAM=inherited";
	child_reset_signals();
	setsid();
	child_exec(m->programs.frontend, control_fd, argv, env);
}

int
frontend_start(struct monitor *m)
{
	struct frontend *f = &m->frontend;
	int pair[2], err = seqpacket_pair(pair);

	if (err < 0)
		return err;
	f->pid = fork();
	if (f->pid == 0)
		frontend_child(m, pair[1]);
	close(pair[1]);
	if (f->pid < 0) {
		err = -errno;
		close(pair[0]);
		return err;
	}
	f->state = FRONTEND_CONFINING;
	f->started_ms = now_ms();
	err = source_add(&f->control, pair[0], EPOLLIN, control_ready);
	if (err < 0)
		return err;
	send_configuration(m);
	return 0;
}

/* What was not said to it is not said to the next one. */
static void
forget(struct monitor *m)
{
	struct frontend *f = &m->frontend;

	requests_forget(m);
	while (!TAILQ_EMPTY(&f->queue))
		outgoing_free(f, TAILQ_FIRST(&f->queue));
}

static void
plan_restart(struct monitor *m)
{
	struct frontend *f = &m->frontend;
	int64_t now = now_ms();

	if (f->state == FRONTEND_CONFINING &&
	    ++f->failures >= (m->announced ? FAILURES_MAX : 1)) {
		log_error(0, "the front-end cannot be started");
		monitor_stop(m, EXIT_FAILED);
	} else if (m->stdio) {
		log_error(0, "the front-end of the stdio connection is gone");
		monitor_stop(m, EXIT_FAILED);
	}
	f->restart_ms =
	    now - f->started_ms < RESTART_AFTER_MS / 2 && f->failures > 1
		? now + RESTART_AFTER_MS
		: now;
	f->state = FRONTEND_DOWN;
}

bool
frontend_reap(struct monitor *m, pid_t pid, int status)
{
	struct frontend *f = &m->frontend;

	if (pid != f->pid)
		return false;
	f->pid = 0;
	source_remove(&f->control);
	forget(m);
	if (m->stopping) {
		f->state = FRONTEND_DOWN;
		return true;
	}
	if (WIFSIGNALED(status))
		log_error(0, "front-end %d: killed by signal %d", (int)pid,
		    WTERMSIG(status));
	else
		log_error(0, "front-end %d: exited with status %d", (int)pid,
		    WEXITSTATUS(status));
	plan_restart(m);
	return true;
}

void
frontend_drain(struct monitor *m)
{
	frontend_send(&m->frontend, MON_EV_DRAIN, NULL, -1);
}

void
frontend_hang_up(struct monitor *m)
{
	source_remove(&m->frontend.control);
}
