/* SPDX-License-Identifier: ISC */
/*
 * The front-end's process: it is started, watched, ended, and started again. It
 * is not trusted. A request that requests.c refuses means that somebody has
 * taken it over; it is then killed, and a new one takes its place.
 */
#include "frontend_child.h"

#include "broker_state.h"
#include "conf.h"
#include "dispose.h"
#include "exit_code.h"
#include "seqpacket.h"
#include "spawn_client.h"

/* messages that wait for a front-end that does not read */
#define QUEUE_MAX    65536
#define FAILURES_MAX 5 /* ends before READY after which execd gives up */
/* if it ended sooner than this after its start */
#define RESTART_AFTER_MS  1000
#define REQUESTS_PER_WAKE 64	/* then others have their turn */
#define READY_MS	  30000 /* the time it has to become READY */
#define PING_MS		  5000	/* from its answer to the next PING */
#define ANSWER_MS	  5000

void
frontend_init(struct frontend *f)
{
	*f = (struct frontend){ .state = FRONTEND_DOWN };
	TAILQ_INIT(&f->queue);
}

static void
close_all(int *fds, size_t n)
{
	while (n-- > 0)
		if (fds[n] >= 0)
			close(fds[n]);
}

static void
outgoing_free(struct frontend *f, struct outgoing *o)
{
	TAILQ_REMOVE(&f->queue, o, link);
	f->queued--;
	buf_clear(&o->message);
	close_all(o->fds, o->nfds);
	free(o);
}

static void
condemn(struct frontend *f, const char *why)
{
	log_error(0, "front-end %d: %s: killing it", (int)f->pid, why);
	spawn_kill(f->pid);
}

/* Takes over the descriptors. */
static void
enqueue(struct frontend *f, struct buf *b, int *fds, size_t nfds)
{
	struct outgoing *o;

	if (f->queued == QUEUE_MAX) {
		condemn(f, "does not read its control channel");
		buf_clear(b);
		close_all(fds, nfds);
		return;
	}
	o = xcalloc(1, sizeof(*o));
	o->message = *b;
	memcpy(o->fds, fds, nfds * sizeof(*fds));
	o->nfds = nfds;
	TAILQ_INSERT_TAIL(&f->queue, o, link);
	if (f->queued++ == 0)
		watch_change(&f->control, EV_READ | EV_WRITE);
}

/* Returns -EAGAIN if the message must be sent later. Any other error would lose
 * the message, and a front-end that waits for ever for an answer is worse than
 * a new front-end. */
static int
send_now(struct frontend *f, const struct buf *b, const int *fds, size_t nfds)
{
	int err =
	    seqpacket_send(watch_fd(&f->control), b->data, b->len, fds, nfds);

	if (err == 0 || err == -EAGAIN || err == -EPIPE || err == -ECONNRESET)
		return err;
	log_error(err, "control channel of the front-end");
	condemn(f, "cannot be told what it must know");
	return err;
}

static void
flush_queue(struct frontend *f)
{
	struct outgoing *o;

	while ((o = TAILQ_FIRST(&f->queue)) != NULL) {
		if (send_now(f, &o->message, o->fds, o->nfds) == -EAGAIN)
			return;
		outgoing_free(f, o);
	}
	watch_change(&f->control, EV_READ);
}

/* Takes over the descriptors, and closes them if the front-end is gone. */
static void
send_with(struct frontend *f, enum control_type type, const void *payload,
    int *fds, size_t nfds)
{
	struct buf b;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	if (watch_fd(&f->control) >= 0 &&
	    (f->queued > 0 || send_now(f, &b, fds, nfds) == -EAGAIN)) {
		enqueue(f, &b, fds, nfds);
		return;
	}
	buf_clear(&b);
	close_all(fds, nfds);
}

void
frontend_send(
    struct frontend *f, enum control_type type, const void *payload, int fd)
{
	send_with(f, type, payload, &fd, fd >= 0);
}

/* An empty message looks like the end of the channel, but its sender still
 * lives. */
static bool
is_open(int fd)
{
	struct pollfd end = { .fd = fd };

	return poll(&end, 1, 0) == 0;
}

static void
control_ready(evutil_socket_t fd, short what, void *arg)
{
	struct frontend *f = arg;
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX], none = -1;
	size_t nfds = 0;
	ssize_t n = -EAGAIN;
	const char *wrong = NULL;

	if (what & EV_WRITE)
		flush_queue(f);
	for (int i = 0; i < REQUESTS_PER_WAKE && wrong == NULL; i++) {
		n = seqpacket_recv(fd, packet, sizeof(packet), fds, &nfds);
		if (n <= 0)
			break;
		if (nfds > 1)
			wrong = "sent a malformed message";
		else
			wrong = broker.on->request(
			    &broker, packet, (size_t)n, nfds ? &fds[0] : &none);
		if (wrong != NULL)
			dispose(fds, nfds);
		else
			close_all(fds, nfds);
		if (watch_fd(&f->control) < 0)
			return;
	}
	if (n == -EMSGSIZE || (n == 0 && is_open(fd)))
		wrong = "sent a malformed message";
	if (wrong != NULL)
		condemn(f, wrong);
	if (wrong == NULL && (n > 0 || n == -EAGAIN))
		return;
	/* A front-end that closes its channel has no purpose any more. */
	if (f->pid > 0)
		spawn_kill(f->pid);
	dispose_channel(watch_end(&f->control));
}

/* Copies the listener's descriptors, which stay ours. Returns 0 or -errno. */
static int
copy_descriptors(const struct listener *l, int *fds, size_t *n)
{
	const int own[] = { l->fd, l->out_fd, l->chain_fd, l->client_ca_fd };

	for (size_t i = 0; i < nitems(own); i++) {
		if (own[i] < 0)
			continue;
		fds[*n] = fcntl(own[i], F_DUPFD_CLOEXEC, 4);
		if (fds[*n] < 0)
			return -errno;
		++*n;
	}
	return 0;
}

static void
send_listener(struct frontend *f, const struct listener *l)
{
	struct control_listener c = {
		.id = l->id,
		.kind = l->kind,
		.tls = listener_has_tls(l),
		.keys = l->keys,
		.has_operators = l->operators.count > 0,
		.key = l->id,
		.trusted = l->trusted_proxies,
	};
	int fds[CONTROL_LISTENER_FDS_MAX + 1];
	size_t n = 0;
	int err = copy_descriptors(l, fds, &n);

	if (err == 0) {
		send_with(f, BROKER_EV_LISTENER, &c, fds, n);
		return;
	}
	log_error(err, "listener %s", l->name);
	close_all(fds, n);
	condemn(f, "cannot be given its listeners");
}

/* type is CONFIGURE or RELOAD. New helpers are started for it. */
static void
send_configuration(struct broker *m, enum control_type type)
{
	struct control_configure c = {
		.limits = m->conf->limits.frontend,
		.listeners = (uint32_t)m->conf->nlisteners,
	};
	int helpers[TLS_HELPERS], fds[TLS_HELPERS];
	size_t nfds = 0;

	helpers_start(m, helpers);
	for (int i = 0; i < TLS_HELPERS; i++) {
		if (helpers[i] < 0)
			continue;
		c.helpers |= (uint8_t)(1u << i);
		fds[nfds++] = helpers[i];
	}
	send_with(m->frontend, type, &c, fds, nfds);
	for (size_t i = 0; i < m->conf->nlisteners; i++)
		send_listener(m->frontend, m->conf->listeners[i]);
}

void
frontend_reload(struct broker *m)
{
	if (watch_fd(&m->frontend->control) >= 0)
		send_configuration(m, BROKER_EV_RELOAD);
}

int
frontend_start(struct broker *m)
{
	struct frontend *f = m->frontend;
	int fd, err;
	pid_t pid = spawn_program(PROGRAM_OF_STRANGERS, NULL, &fd);

	if (pid < 0)
		return (int)pid;
	f->pid = pid;
	f->state = FRONTEND_CONFINING;
	f->started_ms = now_ms();
	f->ping_ms = f->answer_ms = 0;
	f->room_percent = FRONTEND_ROOM_UNTOLD;
	err = watch_add(&f->control, fd, EV_READ, control_ready, f);
	if (err < 0) {
		/* It is started again when it has been reaped. */
		condemn(f, "cannot be listened to");
		close(fd);
		return err;
	}
	send_configuration(m, BROKER_EV_CONFIGURE);
	if (m->drain.drained || broker_is_going(m))
		frontend_drain(m);
	return 0;
}

/* Drops messages that were not sent. They are not for the next front-end. */
static void
forget(struct broker *m)
{
	struct frontend *f = m->frontend;

	m->on->frontend_gone(m);
	while (!TAILQ_EMPTY(&f->queue))
		outgoing_free(f, TAILQ_FIRST(&f->queue));
}

static void
plan_restart(struct broker *m)
{
	struct frontend *f = m->frontend;
	int64_t now = now_ms();

	if (f->state == FRONTEND_CONFINING &&
	    ++f->failures >= (m->announced ? FAILURES_MAX : 1)) {
		log_error(0, "the front-end cannot be started");
		m->on->stop(m, EXIT_FAILED);
	} else if (m->stdio) {
		log_error(0, "the front-end of the stdio connection is gone");
		m->on->stop(m, EXIT_FAILED);
	}
	f->restart_ms =
	    now - f->started_ms < RESTART_AFTER_MS / 2 && f->failures > 1
		? now + RESTART_AFTER_MS
		: now;
	f->state = FRONTEND_DOWN;
}

bool
frontend_reap(struct broker *m, pid_t pid, int status)
{
	struct frontend *f = m->frontend;

	if (pid != f->pid)
		return false;
	f->pid = 0;
	dispose_channel(watch_end(&f->control));
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
	m->counts.replaced_frontends++;
	plan_restart(m);
	return true;
}

static bool
has_sent_something(const struct frontend *f)
{
	struct pollfd heard = { .fd = watch_fd(&f->control), .events = POLLIN };

	return poll(&heard, 1, 0) > 0;
}

/* The deadline may have passed while this program was stopped. Then the answer
 * waits to be read. */
static int64_t
judge_missing(struct frontend *f, int64_t now, int64_t deadline_ms)
{
	if (now < deadline_ms)
		return deadline_ms;
	if (has_sent_something(f))
		return now;
	condemn(f, "does not answer");
	f->answer_ms = now + ANSWER_MS;
	return f->answer_ms;
}

int64_t
frontend_watch(struct broker *m, int64_t now)
{
	struct control_ping ping = {
		.ill = m->audit_stopped	      ? BROKER_ILL_AUDIT
		       : spawn_is_silent(now) ? BROKER_ILL_ROOT
					      : BROKER_WELL,
	};
	struct frontend *f = m->frontend;

	if (f->pid <= 0 || watch_fd(&f->control) < 0 || m->stopping)
		return -1;
	if (f->state == FRONTEND_CONFINING && f->answer_ms == 0)
		f->answer_ms = f->started_ms + READY_MS;
	if (f->answer_ms > 0)
		return judge_missing(f, now, f->answer_ms);
	if (now < f->ping_ms && ping.ill == f->told_ill)
		return ping.ill == BROKER_WELL && spawn_silent_at() < f->ping_ms
			   ? spawn_silent_at()
			   : f->ping_ms;
	f->told_ill = ping.ill;
	f->answer_ms = now + ANSWER_MS;
	frontend_send(f, BROKER_EV_PING, &ping, -1);
	return f->answer_ms;
}

int
frontend_is_alive(struct frontend *f)
{
	int err = f->answer_ms == 0 ? -EPERM : 0;

	f->answer_ms = 0;
	f->ping_ms = now_ms() + PING_MS;
	return err;
}

void
frontend_drain(struct broker *m)
{
	struct control_drain d = { .why = broker_is_going(m) ? DRAIN_STOPPING
					  : m->drain.drained ? DRAIN_OPERATOR
							     : DRAIN_NONE };

	frontend_send(m->frontend, BROKER_EV_DRAIN, &d, -1);
}

void
frontend_stop(struct broker *m)
{
	frontend_send(m->frontend,
	    m->leaving ? BROKER_EV_LEAVE : BROKER_EV_STOP, NULL, -1);
}

void
frontend_hang_up(struct broker *m)
{
	dispose_channel(watch_end(&m->frontend->control));
}
