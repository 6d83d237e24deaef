/* SPDX-License-Identifier: ISC */
/*
 * The front-end's side of the control channel: handles answers and events of
 * the broker. The broker is trusted. A message that it cannot have sent means
 * that something is broken, and ends this program. Requests are in
 * broker_request.c.
 */
#include "base.h"
#include "frontend_main.h"

#include "admission.h"
#include "broker_request.h"
#include "connection.h"
#include "loop.h"
#include "seqpacket.h"
#include "tls_helper.h"

/* A message of the broker that was decoded. */
struct broker_event {
	enum control_type type;
	union {
		struct control_verdict verdict;
		struct control_session session;
		struct control_metrics metrics;
		struct control_closed closed;
		struct control_runner_exited end;
		struct control_configure configure;
		struct control_listener listener;
		struct control_drain drain;
		struct control_load load;
		struct control_ping ping;
		struct control_probe probe;
		uint8_t any[CONTROL_MESSAGE_MAX];
	};
	int fds[SEQPACKET_FDS_MAX]; /* the reaction owns them */
	size_t nfds;
};

static int
on_verdict(struct broker_event *e)
{
	struct connection *c = connection_find(e->verdict.conn);

	if (c == NULL)
		return -EBADMSG;
	handshake_verdict(c, &e->verdict);
	return 0;
}

/* Handles an answer that says that there is no session. It returns the runner's
 * end of the channel. The client may have left meanwhile. */
static int
on_no_session(struct broker_event *e)
{
	const struct control_session *s = &e->session;
	struct connection *c = connection_find(s->conn);

	if (e->nfds != 1 || s->result == SESSION_OK ||
	    s->result > SESSION_FAILED)
		return -EBADMSG;
	close(e->fds[0]);
	if (c != NULL)
		handshake_refused(c, s);
	return 0;
}

static int
on_metrics(struct broker_event *e)
{
	struct connection *c = connection_find(e->metrics.conn);

	if (e->metrics.nidentities > METRICS_IDENTITIES_MAX)
		return -EBADMSG;
	/* The client may have left meanwhile. */
	if (c != NULL && c->state == CONN_OPERATING)
		handshake_metrics(c, &e->metrics);
	return 0;
}

static int
on_closed(struct broker_event *e)
{
	struct connection *c = connection_find(e->closed.conn);

	if (c != NULL)
		connection_on_closed(c, e->closed.end, e->closed.reason);
	return 0;
}

/* The session channel ends at about the same time; then the broker is asked and
 * gives the reason again. It gives none any more after STOP, which may be the
 * next event. */
static int
on_runner_exited(struct broker_event *e)
{
	struct connection *c = connection_find(e->end.conn);

	if (c != NULL && c->ended == NULL)
		c->ended = xstrdup(e->end.reason);
	return 0;
}

/* The operator ended the session: the client gets the reason and nothing more
 * of the session. The client may have left meanwhile. */
static int
on_end(struct broker_event *e)
{
	_cleanup_free_ char *text =
	    xasprintf("session ended: %s", e->end.reason);
	struct connection *c = connection_find(e->end.conn);

	if (c == NULL)
		return 0;
	log_error(0, "connection %u: %s: %s", c->number, c->peer, text);
	connection_close(c, WEBSOCKET_CLOSE_INTERNAL, text);
	return 0;
}

static int
begin_offer(struct offer *o, const struct broker_event *e)
{
	size_t at = 0;

	*o = (struct offer){ .configure = e->configure };
	if (o->configure.listeners > CONTROL_LISTENERS_MAX ||
	    o->configure.limits.exempt.count > CONTROL_NETS_MAX)
		return -EBADMSG;
	for (int i = 0; i < TLS_HELPERS; i++) {
		bool comes = o->configure.helpers & 1u << i;

		if (comes && at == e->nfds)
			return -EBADMSG;
		o->helpers[i] = comes ? e->fds[at++] : -1;
	}
	return at == e->nfds ? 0 : -EBADMSG;
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
add_to_offer(struct offer *o, const struct broker_event *e)
{
	const struct control_listener *l = &e->listener;

	if (o->have >= o->configure.listeners || l->kind > LISTENER_UNIX ||
	    l->keys.client_certificate > CLIENT_CERTIFICATE_REQUIRED ||
	    l->trusted.count > CONTROL_NETS_MAX || e->nfds != fds_of(l))
		return -EBADMSG;
	o->listeners[o->have].listener = *l;
	memcpy(o->listeners[o->have].fds, e->fds, e->nfds * sizeof(*e->fds));
	o->listeners[o->have++].nfds = e->nfds;
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
on_reload(struct broker_event *e)
{
	if (reloading || begin_offer(&reload, e) < 0)
		return -EBADMSG;
	reloading = true;
	return apply_when_complete();
}

static int
on_listener(struct broker_event *e)
{
	if (!reloading || add_to_offer(&reload, e) < 0)
		return -EBADMSG;
	return apply_when_complete();
}

static int
on_drain(struct broker_event *e)
{
	if (e->drain.why > DRAIN_STOPPING)
		return -EBADMSG;
	frontend_drain = e->drain.why;
	return 0;
}

static int
on_load(struct broker_event *e)
{
	if (e->load.room_percent > 100)
		return -EBADMSG;
	agent_set_room(e->load.room_percent);
	return 0;
}

static int
on_stop(struct broker_event *e)
{
	listener_close_all();
	agent_end();
	admission_end();
	proxied_end();
	connection_end_all();
	return 0;
}

/* The client may have left meanwhile; then CLOSE is under way. */
static int
on_probe(struct broker_event *e)
{
	struct connection *c = connection_find(e->probe.conn);

	if (c != NULL)
		connection_probe(c, e->probe.number);
	return 0;
}

/* The next broker's front-end takes the listeners over, and who connects now
 * waits for it. Who came before gets his session here. */
static int
on_leave(struct broker_event *e)
{
	frontend_leaves = true;
	listener_rest();
	connection_end_all();
	return 0;
}

bool
broker_may_leave(void)
{
	return frontend_leaves && connection_all_told() &&
	       admission_waiting() == 0 && proxied_count() == 0;
}

static int
on_ping(struct broker_event *e)
{
	if (e->ping.ill > BROKER_ILL_ROOT)
		return -EBADMSG;
	health_broker(e->ping.ill);
	broker_tell(BROKER_REQ_ALIVE, NULL); /* the event loop is alive */
	return 0;
}

static int
on_idle(struct broker_event *e)
{
	if (listener_is_idle())
		broker_tell(BROKER_REQ_DONE, NULL);
	return 0;
}

static const struct event_row {
	enum control_type type;
	size_t fds_max;
	int (*react)(struct broker_event *e);
} events[] = {
	{ BROKER_ANS_AUTHENTICATE, 0, on_verdict },
	{ BROKER_ANS_OPEN, 1, on_no_session },
	{ BROKER_ANS_RESUME, 1, on_no_session },
	{ BROKER_ANS_WATCH, 1, on_no_session },
	{ BROKER_ANS_CLOSE, 0, on_closed },
	{ BROKER_ANS_METRICS, 0, on_metrics },
	{ BROKER_EV_RUNNER_EXITED, 0, on_runner_exited },
	{ BROKER_EV_END, 0, on_end },
	{ BROKER_EV_RELOAD, TLS_HELPERS, on_reload },
	{ BROKER_EV_LISTENER, CONTROL_LISTENER_FDS_MAX, on_listener },
	{ BROKER_EV_DRAIN, 0, on_drain },
	{ BROKER_EV_LOAD, 0, on_load },
	{ BROKER_EV_STOP, 0, on_stop },
	{ BROKER_EV_LEAVE, 0, on_leave },
	{ BROKER_EV_PING, 0, on_ping },
	{ BROKER_EV_PROBE, 0, on_probe },
	{ BROKER_EV_IDLE, 0, on_idle },
};

static int
decode(struct broker_event *e, const uint8_t *packet, size_t len)
{
	e->type = control_peek(packet, len);
	return control_get(packet, len, e->type, e->any);
}

static void
take_event(struct broker_event *e, const uint8_t *packet, size_t len)
{
	int err = decode(e, packet, len);

	for (size_t i = 0; err == 0 && i < nitems(events); i++) {
		if (events[i].type != e->type)
			continue;
		if (e->nfds > events[i].fds_max || events[i].react(e) < 0)
			break;
		return;
	}
	log_fatal("impossible message from the broker: %s",
	    control_name(control_peek(packet, len)));
}

static void
control_cb(evutil_socket_t fd, short what, void *arg)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	struct broker_event e;
	ssize_t n;

	for (int i = 0; i < 64; i++) {
		n = seqpacket_recv(fd, packet, sizeof(packet), e.fds, &e.nfds);
		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			/* The broker has ended or closed the channel, or a
			 * descriptor could not be received because there are
			 * too many. */
			if (n < 0)
				log_error((int)n, "control channel");
			connection_return_all();
			if (frontend_leaves)
				connection_end_late();
			event_base_loopbreak(base);
			return;
		}
		health_heard();
		take_event(&e, packet, (size_t)n);
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

static size_t
wait_event(
    struct broker_event *e, uint8_t packet[CONTROL_MESSAGE_MAX], int *err)
{
	struct pollfd next = { .fd = CONTROL_FD, .events = POLLIN };
	ssize_t n;

	while (poll(&next, 1, -1) < 0 && errno == EINTR)
		continue;
	n = seqpacket_recv(
	    CONTROL_FD, packet, CONTROL_MESSAGE_MAX, e->fds, &e->nfds);
	if (n == 0)
		exit(0);
	if (n < 0)
		log_fatal_errno((int)n, "control channel");
	*err = decode(e, packet, (size_t)n);
	return (size_t)n;
}

void
broker_wait_configure(struct offer *o)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	char fault[CONTROL_FAULT_MAX];
	struct broker_event e;
	size_t n;
	int err;

	n = wait_event(&e, packet, &err);
	if (err == 0)
		err = e.type == BROKER_EV_CONFIGURE ? begin_offer(o, &e)
						    : -EBADMSG;
	while (err == 0 && o->have < o->configure.listeners) {
		n = wait_event(&e, packet, &err);
		if (err == 0)
			err = e.type == BROKER_EV_LISTENER ? add_to_offer(o, &e)
							   : -EBADMSG;
	}
	if (err < 0)
		log_fatal("impossible configuration from the broker: %s",
		    control_fault(packet, n, fault));
}
