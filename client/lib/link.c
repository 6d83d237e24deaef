/* SPDX-License-Identifier: ISC */
/*
 * The life of the connection: it is opened (link_open.c), used, lost, and
 * opened again until the resume timeout ends. The first connection is tried
 * again, too, within the connect timeout, where nothing has started and the
 * server is not there now.
 *
 *	NONE -> CONNECT -> TLS -> UPGRADE -> INITIALIZE -> READY
 *	  ^        |        |       |            |           |
 *	  +- WAIT <+--------+-------+------------+-----------+
 */
#include "link.h"

#include <errno.h>

#define RETRY_FIRST_MS 100
#define RETRY_MAX_MS   1000

void
link_close(struct execd_client *c)
{
	stream_close(&c->stream);
	wire_reset(c);
	c->link = LINK_NONE;
	c->retry_ms = 0;
	c->ping_ms = 0;
}

/* --- When it fails ------------------------------------------------------ */

/* Tells whether another attempt is useless. */
static bool
is_final(const struct execd_client *c, enum execd_failure failure)
{
	if (c->endpoint.kind == ENDPOINT_STDIO)
		return true;
	if (c->state == EXECD_CONNECTING)
		return !c->may_pass;
	return failure != EXECD_FAILURE_UNREACHABLE &&
	       failure != EXECD_FAILURE_LOST;
}

static void
give_up(struct execd_client *c, enum execd_failure failure)
{
	_cleanup_free_ char *cause = xstrdup(c->error);

	if (c->state != EXECD_CONNECTING) {
		client_set_error(c,
		    "the connection was lost and could not be resumed within "
		    "%u s: %s",
		    c->options.resume_timeout_ms / 1000, cause);
		failure = EXECD_FAILURE_LOST;
	}
	client_over(c, failure);
}

/* Returns when no further attempt begins. */
static int64_t
last_attempt_ms(const struct execd_client *c)
{
	return c->state == EXECD_CONNECTING
		   ? c->first_ms + c->options.connect_timeout_ms
		   : c->lost_ms + c->options.resume_timeout_ms;
}

/* Doubles with each attempt. */
static int64_t
retry_delay_ms(const struct execd_client *c)
{
	int64_t delay = RETRY_FIRST_MS;

	for (unsigned int i = 1; i < c->attempts && delay < RETRY_MAX_MS; i++)
		delay *= 2;
	return delay < RETRY_MAX_MS ? delay : RETRY_MAX_MS;
}

void
link_failed(struct execd_client *c, enum execd_failure failure)
{
	int64_t now = now_ms(), next = now + retry_delay_ms(c);
	bool first = c->state == EXECD_CONNECTING;

	link_close(c);
	if (is_final(c, failure)) {
		client_over(c, failure);
		return;
	}
	/* Another first attempt would have no time to be answered. */
	if ((first ? next : now) >= last_attempt_ms(c)) {
		give_up(c, failure);
		return;
	}
	c->link = LINK_WAIT;
	c->retry_ms = next;
	if (first && c->options.on_state != NULL)
		c->options.on_state(c->options.arg, EXECD_CONNECTING);
}

/* Handles the loss of the connection. The caller has set the error. */
static void
link_lost(struct execd_client *c)
{
	bool was_ready = c->link == LINK_READY;

	if (!was_ready) {
		link_failed(c, EXECD_FAILURE_UNREACHABLE);
		return;
	}
	link_close(c);
	c->lost_ms = now_ms();
	c->attempts = 0;
	calls_lost(c);
	if (c->state == EXECD_OVER)
		return;
	if (link_lease_is_over(c)) {
		link_lease_failed(c);
		return;
	}
	if (c->endpoint.kind == ENDPOINT_STDIO) {
		client_over(c, EXECD_FAILURE_LOST);
		return;
	}
	client_set_state(c, EXECD_RESUMING);
	c->link = LINK_WAIT;
	c->retry_ms = c->lost_ms;
}

/* --- Events ------------------------------------------------------------- */

void
link_prepare(const struct execd_client *c, struct pollfd fds[2], size_t *n)
{
	short in = c->paused ? 0 : POLLIN;
	short out = wire_pending(c) ? POLLOUT : 0;

	*n = link_lease_prepare(c, fds);
	/* Leaves out a descriptor without events: poll(2) would report its
	 * hangup again and again while nobody reads. */
	if (c->link == LINK_NONE || c->link == LINK_WAIT || c->link == LINK_ASK)
		return;
	if (c->link == LINK_CONNECT)
		in = POLLOUT;
	if (c->link == LINK_TLS)
		in = c->stream.tls_wants;
	if (c->stream.in == c->stream.out) {
		in = (short)(in | out);
		out = 0;
	}
	if (in != 0)
		fds[(*n)++] =
		    (struct pollfd){ .fd = c->stream.in, .events = in };
	if (out != 0)
		fds[(*n)++] =
		    (struct pollfd){ .fd = c->stream.out, .events = out };
}

static void
transfer(struct execd_client *c)
{
	int err = c->paused ? 0 : wire_read(c);

	/* A callback may have ended the client or lost the connection. */
	if (err == 0 && c->link >= LINK_INITIALIZE)
		err = wire_flush(c);
	if (err == -EBADMSG && c->link >= LINK_INITIALIZE) {
		link_close(c);
		client_over(c, EXECD_FAILURE_PROTOCOL);
	} else if (err < 0 && c->link >= LINK_INITIALIZE) {
		link_lost(c);
	}
}

void
link_events(struct execd_client *c, const struct pollfd *fds, size_t n)
{
	short happened = 0;

	for (size_t i = 0; i < n; i++)
		happened |= fds[i].revents;
	if (happened == 0 && !stream_has_input(&c->stream) && !wire_pending(c))
		return;
	if (happened != 0) {
		bool asking = c->link == LINK_ASK;

		link_lease_events(c);
		if (asking)
			return; /* what happened was not on a stream */
	}
	if (c->link == LINK_CONNECT && happened != 0)
		link_connected(c);
	link_advance(c);
	if (c->link == LINK_UPGRADE) {
		if (wire_flush(c) < 0)
			link_failed(c, EXECD_FAILURE_UNREACHABLE);
		else if (happened & (POLLIN | POLLHUP | POLLERR))
			link_read_upgrade(c);
	}
	if (c->link >= LINK_INITIALIZE)
		transfer(c);
}

/* Returns when the server has been silent for too long; INT64_MAX: never. The
 * first time a ping is sent. If nothing comes after it, the connection is
 * lost. */
static int64_t
keepalive_at(const struct execd_client *c)
{
	if (c->link != LINK_READY || c->paused ||
	    c->endpoint.kind == ENDPOINT_STDIO)
		return INT64_MAX;
	return (c->ping_ms ? c->ping_ms : c->heard_ms) +
	       c->options.keepalive_ms;
}

int64_t
link_next_ms(const struct execd_client *c)
{
	int64_t at = keepalive_at(c);

	if (c->link != LINK_NONE && c->link < LINK_READY &&
	    c->link != LINK_WAIT)
		at = c->deadline_ms;
	if (link_lease_at(c) < at)
		at = link_lease_at(c);
	if (c->retry_ms != 0 && c->retry_ms < at)
		at = c->retry_ms;
	if (c->link >= LINK_INITIALIZE && !c->paused &&
	    stream_has_input(&c->stream))
		at = 0;
	return at;
}

static void
step_timed_out(struct execd_client *c)
{
	static const char *const steps[] = { [LINK_ASK] = "ask",
		[LINK_CONNECT] = "connect",
		[LINK_TLS] = "TLS handshake",
		[LINK_UPGRADE] = "upgrade to WebSocket",
		[LINK_INITIALIZE] = "initialize" };
	bool attached = c->link == LINK_INITIALIZE && c->retry_ms != 0;

	/* Keeps the server's error that the session is attached to another
	 * connection: it says more than a timeout. */
	if (!attached)
		client_set_error(c, "%s: %s: no answer within %u ms",
		    c->options.url, steps[c->link],
		    c->link == LINK_INITIALIZE
			? c->options.initialize_timeout_ms
			: c->options.connect_timeout_ms);
	link_failed(c, attached && c->state == EXECD_CONNECTING
			   ? EXECD_FAILURE_REFUSED
			   : EXECD_FAILURE_UNREACHABLE);
}

void
link_timeout(struct execd_client *c)
{
	int64_t now = now_ms();

	if (now >= link_lease_at(c)) {
		link_close(c);
		link_lease_failed(c);
	} else if (c->link == LINK_WAIT && now >= c->retry_ms) {
		link_begin(c);
	} else if (c->link == LINK_READY && now >= keepalive_at(c)) {
		if (c->ping_ms == 0) {
			c->ping_ms = now;
			wire_control(c, WEBSOCKET_PING, NULL, 0);
			return;
		}
		client_set_error(c, "%s: the server sent nothing for %lld ms",
		    c->options.url, (long long)(now - c->heard_ms));
		link_lost(c);
	} else if (c->link != LINK_NONE && c->link < LINK_READY &&
		   c->link != LINK_WAIT && now >= c->deadline_ms) {
		step_timed_out(c);
	} else if (c->link == LINK_INITIALIZE && c->retry_ms != 0 &&
		   now >= c->retry_ms) {
		link_send_initialize(c);
	}
}
