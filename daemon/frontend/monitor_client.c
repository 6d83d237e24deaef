/*
 * The front-end's side of the control channel. The monitor is trusted; a
 * message it cannot have sent means that something is broken, and this
 * program ends.
 */
#include "monitor_client.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend.h"
#include "handshake.h"
#include "listener.h"
#include "log.h"
#include "seqpacket.h"
#include "util.h"

/* The monitor never waits for us, so waiting for it cannot lock up. */
static void
request(enum control_type type, const void *payload)
{
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	err = seqpacket_send(CONTROL_FD, b.data, b.len, NULL, 0);
	buf_clear(&b);
	if (err < 0)
		log_fatal_errno(err, "control channel");
}

void
monitor_ready(const struct control_ready *r)
{
	request(MON_REQ_READY, r);
}

void
monitor_authenticate(const struct connection *c, enum credential_kind kind,
    struct slice credential)
{
	struct control_authenticate a = {
		.conn = c->number, .listener = c->listener, .kind = kind
	};

	memcpy(a.peer, c->peer, sizeof(a.peer));
	if (credential.len < sizeof(a.credential))
		memcpy(a.credential, credential.ptr, credential.len);
	request(MON_REQ_AUTHENTICATE, &a);
	explicit_bzero(&a, sizeof(a));
}

void
monitor_open(const struct connection *c)
{
	struct control_open o = { .conn = c->number };

	memcpy(o.grant, c->grant, sizeof(o.grant));
	request(MON_REQ_OPEN, &o);
}

void
monitor_resume(const struct connection *c, const char *session_id)
{
	struct control_resume r = { .conn = c->number };

	memcpy(r.grant, c->grant, sizeof(r.grant));
	strncpy(r.session_id, session_id, sizeof(r.session_id) - 1);
	request(MON_REQ_RESUME, &r);
}

void
monitor_watch_session(const struct connection *c, const char *session_id)
{
	struct control_resume r = { .conn = c->number };

	memcpy(r.grant, c->grant, sizeof(r.grant));
	strncpy(r.session_id, session_id, sizeof(r.session_id) - 1);
	request(MON_REQ_WATCH, &r);
}

void
monitor_close(const struct connection *c)
{
	struct control_close close = { .conn = c->number,
		.channel_ended = c->channel_ended };

	request(MON_REQ_CLOSE, &close);
}

void
monitor_done(void)
{
	request(MON_REQ_DONE, NULL);
}

static int
on_verdict(const uint8_t *packet, size_t len, int fd)
{
	struct control_verdict v;
	struct connection *c;

	if (control_get(packet, len, MON_ANS_AUTHENTICATE, &v) < 0)
		return -EBADMSG;
	c = connection_find(v.conn);
	if (c == NULL)
		return -EBADMSG;
	handshake_verdict(c, &v);
	return 0;
}

static int
on_session(const uint8_t *packet, size_t len, int fd, enum control_type type)
{
	struct control_session s;
	struct connection *c;

	if (control_get(packet, len, type, &s) < 0)
		return -EBADMSG;
	c = connection_find(s.conn);
	if (c == NULL || (s.result == SESSION_OK) != (fd >= 0))
		return -EBADMSG;
	handshake_session(c, &s, fd);
	return 0;
}

static int
on_open(const uint8_t *packet, size_t len, int fd)
{
	return on_session(packet, len, fd, MON_ANS_OPEN);
}

static int
on_resume(const uint8_t *packet, size_t len, int fd)
{
	return on_session(packet, len, fd, MON_ANS_RESUME);
}

static int
on_watch(const uint8_t *packet, size_t len, int fd)
{
	return on_session(packet, len, fd, MON_ANS_WATCH);
}

static int
on_closed(const uint8_t *packet, size_t len, int fd)
{
	struct control_closed closed;
	struct connection *c;

	if (control_get(packet, len, MON_ANS_CLOSE, &closed) < 0)
		return -EBADMSG;
	c = connection_find(closed.conn);
	if (c != NULL)
		connection_on_closed(c, closed.end, closed.reason);
	return 0;
}

/* Its channel says the same, perhaps a moment later; then the monitor is
 * asked and tells the reason again. */
static int
on_runner_exited(const uint8_t *packet, size_t len, int fd)
{
	struct control_runner_exited r;

	return control_get(packet, len, MON_EV_RUNNER_EXITED, &r);
}

static int
on_reload(const uint8_t *packet, size_t len, int fd)
{
	return control_get(packet, len, MON_EV_RELOAD, NULL);
}

static int
on_drain(const uint8_t *packet, size_t len, int fd)
{
	if (control_get(packet, len, MON_EV_DRAIN, NULL) < 0)
		return -EBADMSG;
	listener_close_all();
	connection_end_all();
	return 0;
}

static const struct event_row {
	enum control_type type;
	bool with_fd;
	int (*react)(const uint8_t *packet, size_t len, int fd);
} events[] = {
	{ MON_ANS_AUTHENTICATE, false, on_verdict },
	{ MON_ANS_OPEN, true, on_open },
	{ MON_ANS_RESUME, true, on_resume },
	{ MON_ANS_WATCH, true, on_watch },
	{ MON_ANS_CLOSE, false, on_closed },
	{ MON_EV_RUNNER_EXITED, false, on_runner_exited },
	{ MON_EV_RELOAD, false, on_reload },
	{ MON_EV_DRAIN, false, on_drain },
};

static void
take_event(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	enum control_type type = control_peek(packet, len);

	for (size_t i = 0; i < nitems(events); i++) {
		if (events[i].type != type)
			continue;
		if (nfds > (events[i].with_fd ? 1u : 0u) ||
		    events[i].react(packet, len, nfds ? fds[0] : -1) < 0)
			break;
		return;
	}
	log_fatal(
	    "impossible message from the monitor: %s", control_name(type));
}

static void
control_cb(evutil_socket_t fd, short what, void *arg)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n;

	for (int i = 0; i < 64; i++) {
		n = seqpacket_recv(fd, packet, sizeof(packet), fds, &nfds);
		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			/* The monitor is gone, or has no more use for us. */
			event_base_loopbreak(base);
			return;
		}
		take_event(packet, (size_t)n, fds, nfds);
	}
}

void
monitor_watch(void)
{
	static struct event control;

	event_assign(
	    &control, base, CONTROL_FD, EV_READ | EV_PERSIST, control_cb, NULL);
	if (event_add(&control, NULL) < 0)
		log_fatal("control channel: no event");
}

void
monitor_wait_configure(
    struct control_configure *c, int fds[CONTROL_FDS_MAX], size_t *nfds)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	struct pollfd first = { .fd = CONTROL_FD, .events = POLLIN };
	ssize_t n;

	/* Sends may wait, receiving never does. */
	fcntl(CONTROL_FD, F_SETFL, fcntl(CONTROL_FD, F_GETFL) & ~O_NONBLOCK);
	while (poll(&first, 1, -1) < 0 && errno == EINTR)
		continue;
	n = seqpacket_recv(CONTROL_FD, packet, sizeof(packet), fds, nfds);
	if (n == 0)
		exit(0);
	if (n < 0)
		log_fatal_errno((int)n, "control channel");
	if (control_get(packet, (size_t)n, MON_EV_CONFIGURE, c) < 0 ||
	    c->listeners > CONTROL_FDS_MAX)
		log_fatal("impossible configuration from the monitor");
}
