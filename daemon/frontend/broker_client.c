/* SPDX-License-Identifier: ISC */
/*
 * The front-end's side of the control channel: handles answers and events of
 * the broker. The broker is trusted. A message that it cannot have sent means
 * that something is broken, and ends this program. Requests are in
 * broker_request.c.
 */
#include "frontend_main.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admission.h"
#include "broker_request.h"
#include "connection.h"
#include "frontend.h"
#include "health.h"
#include "log.h"
#include "loop.h"
#include "proxied.h"
#include "seqpacket.h"
#include "tls_helper.h"
#include "util.h"

static int
on_verdict(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_verdict v;
	struct connection *c;

	if (control_get(packet, len, BROKER_ANS_AUTHENTICATE, &v) < 0)
		return -EBADMSG;
	c = connection_find(v.conn);
	if (c == NULL)
		return -EBADMSG;
	handshake_verdict(c, &v);
	return 0;
}

/* Handles an answer that says that there is no session. It returns the runner's
 * end of the channel. The client may have left meanwhile. */
static int
on_no_session(const uint8_t *packet, size_t len, const int *fds, size_t nfds,
    enum control_type type)
{
	struct control_session s;
	struct connection *c;

	if (nfds != 1 || control_get(packet, len, type, &s) < 0 ||
	    s.result == SESSION_OK || s.result > SESSION_FAILED)
		return -EBADMSG;
	close(fds[0]);
	c = connection_find(s.conn);
	if (c != NULL)
		handshake_refused(c, &s);
	return 0;
}

static int
on_open(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	return on_no_session(packet, len, fds, nfds, BROKER_ANS_OPEN);
}

static int
on_resume(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	return on_no_session(packet, len, fds, nfds, BROKER_ANS_RESUME);
}

static int
on_watch(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	return on_no_session(packet, len, fds, nfds, BROKER_ANS_WATCH);
}

static int
on_metrics(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_metrics m;
	struct connection *c;

	if (control_get(packet, len, BROKER_ANS_METRICS, &m) < 0 ||
	    m.nidentities > METRICS_IDENTITIES_MAX)
		return -EBADMSG;
	c = connection_find(m.conn);
	/* The client may have left meanwhile. */
	if (c != NULL && c->state == CONN_OPERATING)
		handshake_metrics(c, &m);
	return 0;
}

static int
on_closed(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_closed closed;
	struct connection *c;

	if (control_get(packet, len, BROKER_ANS_CLOSE, &closed) < 0)
		return -EBADMSG;
	c = connection_find(closed.conn);
	if (c != NULL)
		connection_on_closed(c, closed.end, closed.reason);
	return 0;
}

/* Nothing is done here. The session channel ends at about the same time; then
 * the broker is asked and gives the reason again. */
static int
on_runner_exited(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_runner_exited r;

	return control_get(packet, len, BROKER_EV_RUNNER_EXITED, &r);
}

/* The operator ended the session: the client gets the reason and nothing more
 * of the session. The client may have left meanwhile. */
static int
on_end(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	_cleanup_free_ char *text = NULL;
	struct control_runner_exited end;
	struct connection *c;

	if (control_get(packet, len, BROKER_EV_END, &end) < 0)
		return -EBADMSG;
	c = connection_find(end.conn);
	if (c == NULL)
		return 0;
	text = xasprintf("session ended: %s", end.reason);
	log_error(0, "connection %u: %s: %s", c->number, c->peer, text);
	connection_close(c, WEBSOCKET_CLOSE_INTERNAL, text);
	return 0;
}

static int
begin_offer(struct offer *o, const uint8_t *packet, size_t len,
    enum control_type type, const int *fds, size_t nfds)
{
	size_t at = 0;

	*o = (struct offer){ .have = 0 };
	if (control_get(packet, len, type, &o->configure) < 0 ||
	    o->configure.listeners > CONTROL_LISTENERS_MAX ||
	    o->configure.limits.exempt.count > CONTROL_NETS_MAX)
		return -EBADMSG;
	for (int i = 0; i < TLS_HELPERS; i++) {
		bool comes = o->configure.helpers & 1u << i;

		if (comes && at == nfds)
			return -EBADMSG;
		o->helpers[i] = comes ? fds[at++] : -1;
	}
	return at == nfds ? 0 : -EBADMSG;
}

/* Returns how many descriptors a listener comes with. */
static size_t
fds_of(const struct control_listener *l)
{
	if (l->kind == LISTENER_STDIO)
		return 2;
	return 1u + (l->tls ? 1 : 0) +
	       (l->tls &&
		   l->keys.client_certificate != CLIENT_CERTIFICATE_NONE);
}

static int
add_to_offer(struct offer *o, const uint8_t *packet, size_t len, const int *fds,
    size_t nfds)
{
	struct control_listener l;

	if (control_get(packet, len, BROKER_EV_LISTENER, &l) < 0 ||
	    o->have >= o->configure.listeners || l.kind > LISTENER_UNIX ||
	    l.keys.client_certificate > CLIENT_CERTIFICATE_REQUIRED ||
	    l.trusted.count > CONTROL_NETS_MAX || nfds != fds_of(&l))
		return -EBADMSG;
	o->listeners[o->have].listener = l;
	memcpy(o->listeners[o->have].fds, fds, nfds * sizeof(*fds));
	o->listeners[o->have++].nfds = nfds;
	return 0;
}

/* The offer that is being received. When it is complete, it replaces the
 * previous one. */
static struct offer reload;
static bool reloading;

static void
retire_cb(evutil_socket_t fd, short what, void *arg)
{
	helper_retire();
}

/* Handshakes that began under the old configuration continue with the old
 * helpers, until the pre-auth deadline. */
static void
plan_retirement(void)
{
	static struct event timer;
	const struct timeval tv = { config.pre_auth_deadline_ms / 1000,
		config.pre_auth_deadline_ms % 1000 * 1000 };

	if (!event_initialized(&timer))
		event_assign(&timer, base, -1, 0, retire_cb, NULL);
	loop_add(&timer, &tv);
}

static int
apply_when_complete(void)
{
	if (reload.have < reload.configure.listeners)
		return 0;
	reloading = false;
	config = reload.configure.limits;
	helper_set_channels(reload.helpers);
	listener_close_all();
	listener_take(&reload, false);
	admission_reload();
	proxied_reload();
	plan_retirement();
	return 0;
}

static int
on_reload(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	if (reloading ||
	    begin_offer(&reload, packet, len, BROKER_EV_RELOAD, fds, nfds) < 0)
		return -EBADMSG;
	reloading = true;
	return apply_when_complete();
}

static int
on_listener(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	if (!reloading || add_to_offer(&reload, packet, len, fds, nfds) < 0)
		return -EBADMSG;
	return apply_when_complete();
}

static int
on_drain(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_drain d;

	if (control_get(packet, len, BROKER_EV_DRAIN, &d) < 0 ||
	    d.why > DRAIN_STOPPING)
		return -EBADMSG;
	frontend_drain = d.why;
	return 0;
}

static int
on_load(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_load load;

	if (control_get(packet, len, BROKER_EV_LOAD, &load) < 0 ||
	    load.room_percent > 100)
		return -EBADMSG;
	agent_set_room(load.room_percent);
	return 0;
}

static int
on_stop(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	if (control_get(packet, len, BROKER_EV_STOP, NULL) < 0)
		return -EBADMSG;
	listener_close_all();
	agent_end();
	admission_end();
	proxied_end();
	connection_end_all();
	return 0;
}

static int
on_ping(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	broker_alive();
	return control_get(packet, len, BROKER_EV_PING, NULL);
}

static int
on_idle(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	if (control_get(packet, len, BROKER_EV_IDLE, NULL) < 0)
		return -EBADMSG;
	if (listener_is_idle())
		broker_done();
	return 0;
}

static const struct event_row {
	enum control_type type;
	size_t fds_max;
	int (*react)(
	    const uint8_t *packet, size_t len, const int *fds, size_t nfds);
} events[] = {
	{ BROKER_ANS_AUTHENTICATE, 0, on_verdict },
	{ BROKER_ANS_OPEN, 1, on_open },
	{ BROKER_ANS_RESUME, 1, on_resume },
	{ BROKER_ANS_WATCH, 1, on_watch },
	{ BROKER_ANS_CLOSE, 0, on_closed },
	{ BROKER_ANS_METRICS, 0, on_metrics },
	{ BROKER_EV_RUNNER_EXITED, 0, on_runner_exited },
	{ BROKER_EV_END, 0, on_end },
	{ BROKER_EV_RELOAD, TLS_HELPERS, on_reload },
	{ BROKER_EV_LISTENER, CONTROL_LISTENER_FDS_MAX, on_listener },
	{ BROKER_EV_DRAIN, 0, on_drain },
	{ BROKER_EV_LOAD, 0, on_load },
	{ BROKER_EV_STOP, 0, on_stop },
	{ BROKER_EV_PING, 0, on_ping },
	{ BROKER_EV_IDLE, 0, on_idle },
};

static void
take_event(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	enum control_type type = control_peek(packet, len);

	for (size_t i = 0; i < nitems(events); i++) {
		if (events[i].type != type)
			continue;
		if (nfds > events[i].fds_max ||
		    events[i].react(packet, len, fds, nfds) < 0)
			break;
		return;
	}
	log_fatal("impossible message from the broker: %s", control_name(type));
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
			/* The broker has ended or closed the channel, or a
			 * descriptor could not be received because there are
			 * too many. */
			if (n < 0)
				log_error((int)n, "control channel");
			connection_return_all();
			event_base_loopbreak(base);
			return;
		}
		health_heard();
		take_event(packet, (size_t)n, fds, nfds);
	}
}

/* The request could not be sent. The client is told as if it had been
 * refused. */
static void
tell_unsent(enum control_type type, uint32_t conn)
{
	const struct control_verdict busy = { .conn = conn,
		.verdict = VERDICT_BUSY };
	const struct control_metrics unread = { .conn = conn,
		.verdict = VERDICT_BUSY };
	struct control_session failed = { .conn = conn,
		.result = SESSION_FAILED };
	struct connection *c = connection_find(conn);

	snprintf(failed.reason, sizeof(failed.reason),
	    "the session channel cannot be passed on");
	if (c != NULL && type == BROKER_REQ_AUTHENTICATE)
		handshake_verdict(c, &busy);
	else if (c != NULL && c->state == CONN_OPERATING)
		handshake_metrics(c, &unread);
	else if (c != NULL && c->state == CONN_STARTING)
		handshake_refused(c, &failed);
}

void
broker_watch(void)
{
	static struct event control;

	broker_on_unsent(tell_unsent);
	event_assign(
	    &control, base, CONTROL_FD, EV_READ | EV_PERSIST, control_cb, NULL);
	loop_add(&control, NULL);
}

static ssize_t
wait_packet(uint8_t *packet, size_t cap, int *fds, size_t *nfds)
{
	struct pollfd next = { .fd = CONTROL_FD, .events = POLLIN };
	ssize_t n;

	while (poll(&next, 1, -1) < 0 && errno == EINTR)
		continue;
	n = seqpacket_recv(CONTROL_FD, packet, cap, fds, nfds);
	if (n == 0)
		exit(0);
	if (n < 0)
		log_fatal_errno((int)n, "control channel");
	return n;
}

void
broker_wait_configure(struct offer *o)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	char fault[CONTROL_FAULT_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n;
	int err;

	n = wait_packet(packet, sizeof(packet), fds, &nfds);
	err = begin_offer(o, packet, (size_t)n, BROKER_EV_CONFIGURE, fds, nfds);
	while (err == 0 && o->have < o->configure.listeners) {
		n = wait_packet(packet, sizeof(packet), fds, &nfds);
		err = add_to_offer(o, packet, (size_t)n, fds, nfds);
	}
	if (err < 0)
		log_fatal("impossible configuration from the broker: %s",
		    control_fault(packet, (size_t)n, fault));
}
