/* SPDX-License-Identifier: ISC */
/*
 * The states of a connection, and its end: of its client, of its session
 * channel, and the last messages to both. This file alone changes the state,
 * and it alone begins and ends the data that a state has. What else a
 * transition brings along, such as a timer, is in the function that decides
 * it.
 */
#include <assert.h>

#include "admission.h"
#include "base.h"
#include "broker_request.h"
#include "connection.h"
#include "frontend.h"
#include "metrics.h"

void
start_clear(struct start *start)
{
	rpc_id_clear(&start->id);
	buf_clear(&start->initialize);
}

static void
end_data(struct connection *c)
{
	switch (c->state) {
	case CONN_AUTHENTICATING:
		buf_clear(&c->authenticating.upgrade);
		break;
	case CONN_ATTACHING:
	case CONN_STARTING:
		start_clear(&c->start);
		break;
	case CONN_LEAVING:
		rpc_id_clear(&c->leaving.unanswered);
		break;
	default:
		break;
	}
}

/* A connection goes from state to state in the order of their enum. Only a
 * session that could not be started leads back. */
static void
change_state(struct connection *c, enum connection_state state)
{
	assert(state > c->state ||
	       (c->state == CONN_STARTING && state == CONN_OPEN));
	end_data(c);
	c->state = state;
}

void
connection_to_http(struct connection *c)
{
	change_state(c, CONN_HTTP);
}

void
connection_to_operating(struct connection *c, bool head_only)
{
	change_state(c, CONN_OPERATING);
	c->operating.head_only = head_only;
}

void
connection_to_authenticating(struct connection *c, struct buf *upgrade)
{
	change_state(c, CONN_AUTHENTICATING);
	c->authenticating.upgrade = *upgrade;
	*upgrade = (struct buf){ 0 };
}

struct buf
connection_to_open(struct connection *c)
{
	struct buf upgrade = c->authenticating.upgrade;

	c->authenticating.upgrade = (struct buf){ 0 };
	change_state(c, CONN_OPEN);
	return upgrade;
}

void
connection_to_attaching(struct connection *c, struct start *start)
{
	change_state(c, CONN_ATTACHING);
	c->start = *start;
	*start = (struct start){ 0 };
}

/* ATTACHING and STARTING have the same data. */
void
connection_to_starting(struct connection *c)
{
	assert(c->state == CONN_ATTACHING);
	c->state = CONN_STARTING;
}

struct start
connection_back_to_open(struct connection *c)
{
	struct start start = c->start;

	c->start = (struct start){ 0 };
	change_state(c, CONN_OPEN);
	return start;
}

void
connection_to_attached(struct connection *c)
{
	change_state(c, CONN_ATTACHED);
	c->attached.probe = 0;
	liveness_begin(&c->attached.life, c->proxy != NULL, now_ms(),
	    config.ping_interval_ms);
	c->attached.message = MESSAGE_WHOLE;
}

static void
connection_to_leaving(struct connection *c)
{
	struct rpc_id unanswered = { 0 };

	if (c->state == CONN_STARTING) {
		unanswered = c->start.id;
		c->start.id = (struct rpc_id){ 0 };
	}
	change_state(c, CONN_LEAVING);
	c->leaving.unanswered = unanswered;
}

void
connection_to_dead(struct connection *c)
{
	change_state(c, CONN_DEAD);
}

/*
 * The end of a connection: of its client, of its session channel, and the last
 * messages to both.
 */

void
connection_leave_slot(struct connection *c)
{
	if (!c->has_slot)
		return;
	c->has_slot = false;
	admission_leave(c->source);
}

static void
close_client(struct connection *c)
{
	if (c->in_fd < 0)
		return;
	connection_leave_slot(c);
	event_del(&c->in_event);
	event_del(&c->out_event);
	tls_free(c->tls);
	c->tls = NULL;
	/* The runner may still have the socket open. */
	if (c->handoff != NULL) {
		handoff_unwatch(c);
		shutdown(c->in_fd, SHUT_RDWR);
	}
	if (c->out_fd != c->in_fd)
		close(c->out_fd);
	close(c->in_fd);
	c->in_fd = c->out_fd = -1;
	buf_clear(&c->downlink.buf);
	c->downlink.at = 0;
}

void
connection_return_grant(struct connection *c)
{
	if (c->grant_state != GRANT_HELD)
		return;
	c->grant_state = GRANT_RETURNED;
	broker_close(c);
}

static void
close_channel(struct connection *c)
{
	connection_drop_channel(c);
	connection_return_grant(c);
}

/* The session gets everything that the client had sent, and then the end. */
static void
leave_session(struct connection *c)
{
	if (c->channel.fd < 0 || pending_bytes(&c->channel.uplink) == 0)
		close_channel(c);
	else
		connection_read_runner(c, true); /* its output is discarded */
}

void
connection_client_gone(struct connection *c)
{
	if (c->state < CONN_GONE) {
		change_state(c, CONN_GONE);
		connection_timer(c, LINGER_MS);
	}
	close_client(c);
	leave_session(c);
	connection_release(c);
}

void
connection_finish(struct connection *c)
{
	if (c->state < CONN_CLOSING) {
		change_state(c, CONN_CLOSING);
		c->closing.shut = false;
		connection_leave_slot(c);
		connection_timer(c, GOODBYE_MS);
		leave_session(c);
	}
	if (c->state != CONN_CLOSING || c->closing.shut ||
	    pending_bytes(&c->downlink) > 0)
		return;
	c->closing.shut = true;
	if (c->tls != NULL)
		tls_shutdown(c->tls);
	if (connection_is_stdio(c) || shutdown(c->out_fd, SHUT_WR) < 0)
		connection_client_gone(c);
	else
		/* The client's end of file shows that it has read
		 * everything. */
		connection_read_client(c, true);
}

size_t
connection_reason_len(const char *reason)
{
	size_t n = strlen(reason);

	if (n <= CONTROL_CLOSE_REASON_MAX - 1)
		return n;
	n = CONTROL_CLOSE_REASON_MAX - 1;
	while (n > 0 && ((uint8_t)reason[n] & 0xc0) == 0x80)
		n--;
	return n;
}
_Static_assert(CONTROL_CLOSE_REASON_MAX - 1 + 2 <= WEBSOCKET_CONTROL_MAX,
    "a reason and its code are one close frame");

static void
write_close_frame(struct connection *c, uint16_t code, const char *reason)
{
	uint8_t header[WEBSOCKET_HEADER_MAX], payload[WEBSOCKET_CONTROL_MAX];
	size_t len = 0, n = connection_reason_len(reason);
	struct iovec iov[2];

	/* 1005 stands for a close frame without a code. It is answered in the
	 * same way. */
	if (code != 1005) {
		payload[0] = (uint8_t)(code >> 8);
		payload[1] = (uint8_t)code;
		memcpy(payload + 2, reason, n);
		len = n + 2;
	}
	iov[0] = (struct iovec){ header,
		websocket_put_header(header, WEBSOCKET_CLOSE, len) };
	iov[1] = (struct iovec){ payload, len };
	connection_write(c, iov, 2);
}

void
connection_close(struct connection *c, uint16_t code, const char *reason)
{
	bool inside = c->channel.frame_left > 0 || c->channel.header_len > 0;

	if (c->state >= CONN_CLOSING || handoff_reclaim(c, code, reason))
		return;
	/* A frame cannot begin inside another one. */
	if (inside) {
		connection_client_gone(c);
		return;
	}
	if (!connection_is_stdio(c) && c->state >= CONN_OPEN)
		write_close_frame(c, code, reason);
	connection_finish(c);
}

void
connection_channel_ended(struct connection *c)
{
	if (c->channel.fault != CHANNEL_FAILED)
		c->channel.fault = CHANNEL_ENDED;
	close_channel(c);
	if (c->state >= CONN_CLOSING) {
		connection_release(c);
		return;
	}
	if (handoff_return(c))
		return;
	connection_to_leaving(c);
	connection_read_client(c, false);
}

size_t
connection_read_channel(struct connection *c, void *p, size_t room)
{
	ssize_t n = read(c->channel.fd, p, room);

	if (n > 0)
		return (size_t)n;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0 && errno != ECONNRESET)
		c->channel.fault = CHANNEL_FAILED;
	connection_channel_ended(c);
	return 0;
}

static void
fail_initialize(struct connection *c, const char *reason)
{
	_cleanup_free_ char *text = xasprintf("the session could not be "
					      "started: %s",
	    reason);
	struct json_text t;

	metrics.sessions_failed++;
	json_text_init(&t, 4096 + c->leaving.unanswered.len);
	rpc_write_error(
	    &t.w, &c->leaving.unanswered, RPC_INTERNAL, text, strlen(text));
	connection_send(c, t.buf.data, t.buf.len);
	buf_clear(&t.buf);
}

void
connection_on_closed(
    struct connection *c, enum channel_end end, const char *reason)
{
	_cleanup_free_ char *text = NULL;

	if (c->state != CONN_LEAVING)
		return;
	if (c->leaving.unanswered.text != NULL)
		fail_initialize(c, reason[0] ? reason : "its channel closed");
	switch (end) {
	case CHANNEL_END_CRASHED:
		connection_penalise(c, OFFENCE_CRASH);
		/* fall through */
	case CHANNEL_END_RUNNER:
		/* The runner itself is there, and has said why in the log. */
		text = xasprintf("session ended: %s",
		    reason[0] ? reason
			      : "a helper of its runner ended in the middle of "
				"an answer");
		log_error(0, "connection %u: %s: %s", c->number, c->peer, text);
		connection_close(c, WEBSOCKET_CLOSE_INTERNAL, text);
		break;
	case CHANNEL_END_ASKED:
		connection_close(
		    c, WEBSOCKET_CLOSE_NORMAL, "the session was ended");
		break;
	case CHANNEL_END_PROTOCOL:
		connection_close(c, WEBSOCKET_CLOSE_POLICY,
		    "the message breaks the protocol");
		break;
	case CHANNEL_END_REPLACED:
		connection_close(c, WEBSOCKET_CLOSE_GOING_AWAY,
		    "the session was resumed elsewhere");
		break;
	case CHANNEL_END_DETACHED:
		connection_close(
		    c, WEBSOCKET_CLOSE_GOING_AWAY, "the session was detached");
		break;
	}
}
