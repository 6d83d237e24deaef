/* SPDX-License-Identifier: ISC */
/*
 * A client's connection: the object, its events, its links and its session
 * channel. The end of a connection is in connection_state.c.
 */
#include "connection.h"

#include <event2/event.h>

#include "broker_request.h"
#include "frontend.h"
#include "http.h"
#include "log_limit.h"
#include "loop.h"
#include "metrics.h"
#include "rights.h"

/*
 * Bytes of a connection that wait.
 */

static void
pending_keep(struct pending *p, const struct iovec *iov, int n, size_t skip)
{
	for (int i = 0; i < n; i++) {
		size_t cut = skip < iov[i].iov_len ? skip : iov[i].iov_len;

		buf_put(&p->buf, (uint8_t *)iov[i].iov_base + cut,
		    iov[i].iov_len - cut);
		skip -= cut;
	}
}

int
pending_write(struct pending *p, int fd, SSL *tls, struct iovec *iov, int n)
{
	ssize_t written = 0;

	if (n == 0)
		return 0;
	if (pending_bytes(p) == 0) {
		written = tls ? tls_writev(tls, iov, n) : writev(fd, iov, n);
		if (written < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	pending_keep(p, iov, n, written > 0 ? (size_t)written : 0);
	return 0;
}

int
pending_flush(struct pending *p, int fd, SSL *tls)
{
	const struct iovec rest = { p->buf.data + p->at, pending_bytes(p) };
	ssize_t n = tls ? tls_writev(tls, &rest, 1) : writev(fd, &rest, 1);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	p->at += (size_t)n;
	if (pending_bytes(p) == 0) {
		buf_clear(&p->buf);
		p->at = 0;
	} else if (p->at > p->buf.len / 2) {
		buf_consume(&p->buf, p->at);
		p->at = 0;
	}
	return 0;
}

/* --- messages that cannot be relayed piece by piece --------------------- */

/* Each connection may always hold this much. An initialize is smaller. */
#define ALWAYS_BYTES (64u << 10)

/* All messages together may hold as much as this many of the largest. */
#define LARGEST_TOGETHER 4

static uint64_t held;

/* Returns how many bytes of a message count against the limit. */
static uint64_t
counted(size_t len)
{
	return len > ALWAYS_BYTES ? len - ALWAYS_BYTES : 0;
}

bool
collect(struct buf *message, const void *p, size_t len)
{
	uint64_t more = counted(message->len + len) - counted(message->len);

	if (message->limit == 0)
		buf_init(message, config.max_message_bytes);
	if (held + more > config.max_message_bytes * LARGEST_TOGETHER)
		return false;
	buf_put(message, p, len);
	if (message->failed)
		return false;
	held += more;
	return true;
}

struct buf
collect_take(struct buf *message)
{
	struct buf taken = *message;

	held -= counted(taken.len);
	buf_init(message, taken.limit);
	return taken;
}

void
collect_drop(struct buf *message)
{
	struct buf taken = collect_take(message);

	buf_clear(&taken);
}

static struct table connections;
static struct connection *dead;
static uint32_t last_number;

static void timer_cb(evutil_socket_t fd, short what, void *arg);
static void channel_in_cb(evutil_socket_t fd, short what, void *arg);

/* Returns true if more can be read at once, for which no event will come. */
static bool
has_more(const struct connection *c)
{
	return c->in_always || (c->tls != NULL && tls_has_bytes(c->tls));
}

static void
in_cb(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;

	if (c->input != INPUT_READING) {
		event_del(&c->in_event);
		return;
	}
	if (c->state == CONN_TLS)
		handshake_tls(c);
	else
		relay_read_client(c);
	if (c->input == INPUT_READING && c->in_fd >= 0 && has_more(c))
		event_active(&c->in_event, EV_READ, 0);
}

static void
out_cb(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;

	if (c->state == CONN_TLS) {
		handshake_tls(c);
		return;
	}
	relay_write_client(c);
	if (c->read_wants_write && c->input == INPUT_READING && c->in_fd >= 0)
		relay_read_client(c);
	if (c->state == CONN_CLOSING && pending_bytes(&c->downlink) == 0)
		connection_finish(c);
}

struct connection *
connection_new(const struct listener_traits *listener, int in_fd, int out_fd,
    SSL *tls, const char *peer)
{
	struct connection *c = xcalloc(1, sizeof(*c));

	c->number = ++last_number;
	c->state = tls != NULL ? CONN_TLS : CONN_HTTP;
	c->listener = *listener;
	c->in_fd = in_fd;
	c->out_fd = out_fd;
	c->tls = tls;
	c->channel.fd = -1;
	snprintf(c->peer, sizeof(c->peer), "%s", peer);
	buf_init(&c->kept, HTTP_HEAD_MAX + SCRATCH_BYTES);
	buf_init(&c->channel.uplink.buf,
	    config.max_message_bytes + SCRATCH_BYTES * 2);
	buf_init(&c->downlink.buf, SIZE_MAX);
	websocket_parser_init(&c->parser, config.max_message_bytes);
	event_assign(
	    &c->in_event, base, c->in_fd, EV_READ | EV_PERSIST, in_cb, c);
	event_assign(&c->out_event, base, c->out_fd, EV_WRITE, out_cb, c);
	event_assign(&c->timer, base, -1, 0, timer_cb, c);
	table_insert(&connections, &c->node, c->number);
	return c;
}

static bool
match_number(const struct table_node *node, const void *key)
{
	return TABLE_OBJECT(node, const struct connection, node)->number ==
	       *(const uint32_t *)key;
}

struct connection *
connection_find(uint32_t number)
{
	struct table_node *node =
	    table_find(&connections, number, match_number, &number);

	return node ? TABLE_OBJECT(node, struct connection, node) : NULL;
}

unsigned
connection_count(void)
{
	return (unsigned)connections.count;
}

void
connection_timer(struct connection *c, uint32_t ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	event_del(&c->timer);
	if (ms > 0)
		loop_add(&c->timer, &tv);
}

/* Shuts a socket down that the kernel does not watch, and reports its end as an
 * event. Otherwise its peer would wait for ever. */
static void
connection_hear_end(int fd, struct event *ev)
{
	shutdown(fd, SHUT_RDWR);
	event_active(ev, EV_READ, 0);
}

void
connection_await_client(struct connection *c)
{
	if (event_add(&c->out_event, NULL) == 0)
		return;
	if (connection_is_stdio(c)) {
		event_active(&c->out_event, EV_WRITE, 0);
		return;
	}
	c->input = INPUT_READING;
	connection_hear_end(c->in_fd, &c->in_event);
}

void
connection_read_client(struct connection *c, bool on)
{
	enum input_state wanted = on ? INPUT_READING : INPUT_PAUSED;

	if (c->input == wanted || c->input == INPUT_ENDED || c->in_fd < 0)
		return;
	c->input = wanted;
	/* The event is removed only when input comes (in_cb()), which is
	 * rare. */
	if (!on)
		return;
	if (c->in_always || event_add(&c->in_event, NULL) < 0) {
		/* A file is always ready, and epoll cannot watch it. */
		c->in_always = connection_is_stdio(c);
		if (connection_is_stdio(c))
			event_active(&c->in_event, EV_READ, 0);
		else
			connection_hear_end(c->in_fd, &c->in_event);
	}
	if (c->tls != NULL && tls_has_bytes(c->tls))
		event_active(&c->in_event, EV_READ, 0);
}

ssize_t
connection_recv(struct connection *c, void *p, size_t n)
{
	ssize_t got;

	if (c->tls == NULL)
		return read(c->in_fd, p, n);
	got = tls_read(c->tls, p, n, &c->read_wants_write);
	if (got < 0 && c->read_wants_write)
		connection_await_client(c);
	return got;
}

void
connection_penalise(struct connection *c, enum offence offence)
{
	char text[128];
	int64_t ms;

	if (c->source != NULL)
		metrics.penalties[offence]++;
	ms = source_penalise(&config, c->source, offence, now_ms());
	if (ms == 0)
		return;
	snprintf(text, sizeof(text),
	    "too many failures from there, refused for %lld s",
	    (long long)(ms + 999) / 1000);
	broker_refused(c, text);
	if (log_permits(LOG_DECISION, c->peer, "penalty"))
		log_warn(0, "%s: %s", c->peer, text);
}

/* --- the end ------------------------------------------------------------ */

void
connection_release(struct connection *c)
{
	if (c->state == CONN_DEAD || c->in_fd >= 0 || c->channel.fd >= 0 ||
	    c->grant_state == GRANT_ASKED)
		return;
	connection_return_grant(c);
	if (connection_is_stdio(c))
		broker_tell(BROKER_REQ_DONE, NULL);
	event_del(&c->timer);
	source_leave(c->source, now_ms());
	c->source = NULL;
	table_remove(&connections, &c->node);
	connection_to_dead(c);
	c->next_dead = dead;
	dead = c;
}

void
connection_reap(void)
{
	struct connection *c;

	while ((c = dead) != NULL) {
		dead = c->next_dead;
		handoff_free(c->handoff);
		free(c->proxy);
		free(c->ended);
		buf_clear(&c->kept);
		collect_drop(&c->message);
		buf_clear(&c->channel.uplink.buf);
		buf_clear(&c->downlink.buf);
		explicit_bzero(c, sizeof(*c));
		free(c);
	}
}

/* Returns a list of all connections, which is the caller's. The table cannot be
 * walked directly, because a connection that ends changes it. */
static struct connection **
all_connections(void)
{
	struct connection **all = xcalloc(connections.count, sizeof(*all));
	struct connection *c, **at = all;

	TABLE_FOREACH (c, &connections, node)
		*at++ = c;
	return all;
}

/* A client that is told so can resume. */
static void
end_one(struct connection *c)
{
	_cleanup_free_ char *text = NULL;

	if (c->ended != NULL) {
		text = xasprintf("session ended: %s", c->ended);
		connection_close(c, WEBSOCKET_CLOSE_INTERNAL, text);
		return;
	}
	connection_close(c, WEBSOCKET_CLOSE_GOING_AWAY,
	    frontend_leaves ? "the server is reloading: resume the session"
			    : "the server is stopping");
}

static void
end_if(bool (*ends)(const struct connection *c))
{
	size_t n = connections.count;
	_cleanup_free_ struct connection **all = all_connections();

	for (size_t i = 0; i < n; i++)
		if (ends(all[i]))
			end_one(all[i]);
}

static bool
has_session(const struct connection *c)
{
	return !frontend_leaves || c->state == CONN_ATTACHED;
}

static bool
is_late(const struct connection *c)
{
	return c->state >= CONN_OPEN;
}

void
connection_end_all(void)
{
	end_if(has_session);
}

void
connection_end_late(void)
{
	end_if(is_late);
}

bool
connection_all_told(void)
{
	const struct connection *c;

	TABLE_FOREACH (c, &connections, node)
		if (c->state < CONN_CLOSING)
			return false;
	return true;
}

void
connection_return_all(void)
{
	size_t n = connections.count;
	_cleanup_free_ struct connection **all = all_connections();

	for (size_t i = 0; i < n; i++)
		handoff_return(all[i]);
}

/* --- signs of life ------------------------------------------------------- */

static struct liveness_now
moment(const struct connection *c)
{
	return (struct liveness_now){ .ms = now_ms(),
		.fd = c->in_fd,
		.reading = c->input == INPUT_READING,
		.interval_ms = config.ping_interval_ms,
		.deadline_ms = config.pong_deadline_ms };
}

/* Sends a ping, if one may be sent now, that asks this question. Returns false
 * if nothing asks it. */
static bool
ask(struct connection *c, struct question *q)
{
	struct liveness_now now = moment(c);
	bool pings = relay_may_ping(c);

	if (!liveness_ask(q, &now, pings, pending_bytes(&c->downlink) > 0))
		return false;
	if (pings)
		relay_ping(c);
	return true;
}

static void
client_is_silent(struct connection *c, enum liveness_result why)
{
	if (why == LIVENESS_OVER) {
		log_info("connection %u: %s: no pong within %u ms", c->number,
		    c->peer, config.pong_deadline_ms);
		connection_client_gone(c);
		return;
	}
	log_info("connection %u: %s: silent, and its session is wanted "
		 "elsewhere",
	    c->number, c->peer);
	connection_close(c, WEBSOCKET_CLOSE_GOING_AWAY, PROBE_SILENT);
}

static void
plan_look(struct connection *c)
{
	struct liveness_now now = moment(c);
	int64_t wait = liveness_next(&c->attached.life, &now) - now.ms;

	connection_timer(c, wait > 0 ? (uint32_t)wait : 1);
}

void
connection_look(struct connection *c)
{
	struct liveness_now now = moment(c);
	enum liveness_result r = liveness_look(&c->attached.life, &now);

	if (r == LIVENESS_PING)
		ask(c, &c->attached.life.ping);
	else if (r == LIVENESS_PROBED)
		broker_probed(c, c->attached.probe, PROBE_ALIVE);
	else if (r != LIVENESS_OPEN)
		client_is_silent(c, r);
	/* The ping may have found that the client is gone. */
	if (c->state == CONN_ATTACHED)
		plan_look(c);
}

void
connection_probe(struct connection *c, uint32_t number)
{
	/* CLOSE is the answer of a connection that is ending. */
	if (c->state >= CONN_LEAVING)
		return;
	if (c->handoff != NULL) {
		broker_probed(c, number, PROBE_HANDED_OVER);
		return;
	}
	if (c->state != CONN_ATTACHED || connection_is_stdio(c)) {
		broker_probed(c, number, PROBE_ALIVE);
		return;
	}
	c->attached.probe = number;
	c->attached.life.probe.asked_ms = 0;
	if (!ask(c, &c->attached.life.probe))
		broker_probed(c, number, PROBE_ALIVE);
	else if (c->state == CONN_ATTACHED)
		plan_look(c);
}

/*
 * The client was in time with its initialize, and waits for us: for as long
 * again. The runner may have answered already; it reports that before it
 * answers, but this timer may run before the report is read.
 */
static void
start_is_late(struct connection *c)
{
	int64_t waited = now_ms() - c->start.asked_ms;

	if (c->channel.fd >= 0)
		channel_in_cb(c->channel.fd, EV_READ, c);
	if (c->state != CONN_STARTING)
		return;
	if (waited < config.pre_auth_deadline_ms) {
		connection_timer(
		    c, config.pre_auth_deadline_ms - (uint32_t)waited);
		return;
	}
	log_error(0,
	    "connection %u: %s: its session did not begin within %u "
	    "ms",
	    c->number, c->peer, config.pre_auth_deadline_ms);
	connection_close(c, WEBSOCKET_CLOSE_GOING_AWAY,
	    "the server took too long to begin the session");
}

static void
timer_cb(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;

	if (c->state < CONN_LEAVING && handoff_waits(c)) {
		handoff_timeout(c);
		return;
	}
	switch (c->state) {
	case CONN_STARTING:
		start_is_late(c);
		break;
	case CONN_ATTACHED:
		if (frontend_leaves)
			end_one(c);
		else
			connection_look(c);
		break;
	case CONN_CLOSING:
		connection_client_gone(c);
		break;
	case CONN_LEAVING:
		break;
	case CONN_GONE:
		buf_clear(&c->channel.uplink.buf);
		c->channel.uplink.at = 0;
		connection_client_gone(c);
		break;
	default:
		if (log_permits(LOG_FAILURE, c->peer, "deadline"))
			log_info("connection %u: %s: not ready within %u ms",
			    c->number, c->peer, config.pre_auth_deadline_ms);
		metrics.deadline_missed++;
		connection_penalise(c, OFFENCE_DEADLINE);
		connection_close(c, WEBSOCKET_CLOSE_POLICY,
		    "no session was initialized in time");
	}
}

/* --- the links ---------------------------------------------------------- */

bool
connection_write(struct connection *c, struct iovec *iov, int n)
{
	if (c->out_fd < 0)
		return false;
	for (int i = 0; i < n; i++)
		metrics.bytes_sent += iov[i].iov_len;
	if (pending_write(&c->downlink, c->out_fd, c->tls, iov, n) < 0) {
		connection_client_gone(c);
		return false;
	}
	if (pending_bytes(&c->downlink) > 0) {
		connection_read_runner(c, false);
		connection_await_client(c);
	}
	return true;
}

void
connection_send(struct connection *c, const void *text, size_t len)
{
	uint8_t header[WEBSOCKET_HEADER_MAX];
	struct iovec iov[2] = { { (void *)(uintptr_t)text, len },
		{ (void *)(uintptr_t) "\n", 1 } };

	if (!connection_is_stdio(c)) {
		iov[1] = iov[0];
		iov[0] = (struct iovec){ header,
			websocket_put_header(header, WEBSOCKET_TEXT, len) };
	}
	connection_write(c, iov, 2);
}

/* --- the session channel ------------------------------------------------ */

static void
channel_in_cb(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;

	if (c->handoff != NULL)
		handoff_read(c);
	else
		relay_read_runner(c);
}

static void
channel_out_cb(evutil_socket_t fd, short what, void *arg)
{
	relay_write_runner(arg);
}

/* The channel cannot be watched, so it is given up. If the runner is alive, its
 * session can be resumed. */
static void
lose_channel(struct connection *c, int err)
{
	log_error(err, "connection %u: session channel", c->number);
	c->channel.fault = CHANNEL_FAILED;
	connection_hear_end(c->channel.fd, &c->channel.in_event);
}

void
connection_read_runner(struct connection *c, bool on)
{
	if (c->channel.reading == on || c->channel.fd < 0)
		return;
	c->channel.reading = on;
	if (!on)
		event_del(&c->channel.in_event);
	else if (event_add(&c->channel.in_event, NULL) < 0)
		lose_channel(c, -errno);
}

void
connection_await_runner(struct connection *c)
{
	if (event_add(&c->channel.out_event, NULL) < 0)
		lose_channel(c, -errno);
}

int
connection_attach(struct connection *c)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		pair) < 0)
		return -errno;
	c->channel.fd = pair[0];
	rights_refuse(c->channel.fd);
	event_assign(&c->channel.in_event, base, c->channel.fd,
	    EV_READ | EV_PERSIST, channel_in_cb, c);
	event_assign(&c->channel.out_event, base, c->channel.fd, EV_WRITE,
	    channel_out_cb, c);
	connection_read_runner(c, true);
	return pair[1];
}

void
connection_drop_channel(struct connection *c)
{
	if (c->channel.fd < 0)
		return;
	event_del(&c->channel.in_event);
	event_del(&c->channel.out_event);
	close(c->channel.fd);
	c->channel.fd = -1;
	c->channel.reading = false;
}

void
connection_unattach(struct connection *c)
{
	connection_drop_channel(c);
	c->channel.fault = CHANNEL_WORKS;
	buf_clear(&c->channel.uplink.buf);
	c->channel.uplink.at = 0;
}
