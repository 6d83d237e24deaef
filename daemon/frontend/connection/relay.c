/* SPDX-License-Identifier: ISC */
/*
 * The relay: WebSocket frames or lines on one side, frames with a length on the
 * other. A payload is read once, unmasked in place and written once. It is
 * copied only if its receiver does not take it at once.
 */
#include "base.h"
#include "connection.h"

#include "frontend.h"
#include "metrics.h"
#include "utf8.h"

/* --- to the runner ------------------------------------------------------ */

/* What is sent to the runner for one read from the client. */
struct batch {
	struct iovec iov[RELAY_IOV_MAX];
	int n;
	uint8_t headers[RELAY_IOV_MAX][FRAME_HEADER_BYTES];
	int headers_used;
};

static void relay_own_frames(struct connection *c);

/* A message could not be sent. Later ones must not be sent either, so the
 * channel is shut down, and its end of file does the rest. If the runner is
 * alive, its session can be resumed. */
static void
give_up_channel(struct connection *c, int err)
{
	if (err != -EPIPE && err != -ECONNRESET) {
		log_error(err, "connection %u: session channel", c->number);
		c->channel.fault = CHANNEL_FAILED;
		shutdown(c->channel.fd, SHUT_RDWR);
	}
	buf_clear(&c->channel.uplink.buf);
	c->channel.uplink.at = 0;
}

void
relay_write(struct connection *c, struct iovec *iov, int n)
{
	int err =
	    pending_write(&c->channel.uplink, c->channel.fd, NULL, iov, n);

	if (err < 0) {
		give_up_channel(c, err);
		return;
	}
	if (pending_bytes(&c->channel.uplink) > 0) {
		connection_read_client(c, false);
		connection_await_runner(c);
	}
}

static void
uplink_write(struct connection *c, struct batch *b)
{
	if (b->n > 0 && c->channel.fd >= 0)
		relay_write(c, b->iov, b->n);
	b->n = b->headers_used = 0;
}

static void
batch_add(struct connection *c, struct batch *b, const void *p, size_t len)
{
	if (b->n == RELAY_IOV_MAX)
		uplink_write(c, b);
	b->iov[b->n++] = (struct iovec){ (void *)(uintptr_t)p, len };
}

static void
batch_header(struct connection *c, struct batch *b, size_t len, bool more)
{
	uint8_t *header;

	if (b->n >= RELAY_IOV_MAX - 2)
		uplink_write(c, b);
	header = b->headers[b->headers_used++];
	frame_put_length(header, (uint32_t)len | (more ? FRAME_MORE : 0));
	batch_add(c, b, header, FRAME_HEADER_BYTES);
}

/* A frame must not be empty. An empty message is sent as a blank, which is just
 * as malformed, and the runner answers it in its turn. */
static void
batch_message(struct connection *c, struct batch *b, const void *p, size_t len)
{
	batch_header(c, b, len ? len : 1, false);
	batch_add(c, b, len ? p : " ", len ? len : 1);
}

void
relay_forward(struct connection *c, const void *text, size_t len)
{
	struct batch b;

	b.n = b.headers_used = 0;
	batch_message(c, &b, text, len);
	uplink_write(c, &b);
}

void
relay_write_runner(struct connection *c)
{
	int err = pending_flush(&c->channel.uplink, c->channel.fd, NULL);

	if (err < 0)
		give_up_channel(c, err);
	if (pending_bytes(&c->channel.uplink) > 0)
		connection_await_runner(c);
	else if (c->state >= CONN_CLOSING)
		connection_client_gone(c);
	else
		relay_take_kept(c);
}

/* --- from the client ---------------------------------------------------- */

static bool
is_relaying(const struct connection *c)
{
	return c->handoff == NULL && c->state == CONN_ATTACHED;
}

/* Returns true if the next message may be handled now. Bytes that were already
 * read are relayed even if the runner is slow; they are at most one read. */
static bool
is_taking(const struct connection *c)
{
	return is_relaying(c) ||
	       (c->state == CONN_OPEN &&
		   pending_bytes(&c->downlink) < UNREAD_MAX_BYTES);
}

static void
collected(struct connection *c)
{
	struct buf message = collect_take(&c->message);
	char empty[1] = "";

	handshake_message(
	    c, message.len ? (char *)message.data : empty, message.len);
	buf_clear(&message);
}

/* Relays a message in pieces: either its length is unknown, because it is
 * fragmented, or it is so long that the runner should not hold it as a
 * whole. */
static void
relay_piece(struct connection *c, struct batch *b, struct websocket_item *item)
{
	if (item->last && item->len == 0 &&
	    c->attached.message == MESSAGE_IN_PIECES) {
		batch_message(c, b, NULL, 0);
		return;
	}
	if (item->len == 0 && !item->last)
		return;
	c->attached.message = MESSAGE_PIECE_SENT;
	batch_header(c, b, item->len, !item->last);
	if (item->len > 0)
		batch_add(c, b, item->payload, item->len);
}

static void
refuse_message(struct connection *c)
{
	log_info("connection %u: %s: too much waits before initialize",
	    c->number, c->peer);
	collect_drop(&c->message);
	connection_close(
	    c, WEBSOCKET_CLOSE_TOO_BIG, "too much waits before initialize");
}

static void
relay_data(struct connection *c, struct batch *b, struct websocket_item *item)
{
	if (item->first)
		c->attached.message =
		    item->fragmented ||
			    item->message_len >= FRAME_PIECES_FROM_BYTES
			? MESSAGE_IN_PIECES
			: MESSAGE_WHOLE;
	if (c->attached.message != MESSAGE_WHOLE) {
		relay_piece(c, b, item);
	} else if (item->first && item->message_len == 0) {
		batch_message(c, b, NULL, 0);
	} else {
		if (item->first)
			batch_header(c, b, item->message_len, false);
		if (item->len > 0)
			batch_add(c, b, item->payload, item->len);
	}
}

/* A message never spans the two: a session starts only when an initialize is
 * complete. */
static void
take_data(struct connection *c, struct batch *b, struct websocket_item *item)
{
	if (is_relaying(c))
		relay_data(c, b, item);
	else if (!collect(&c->message, item->payload, item->len))
		refuse_message(c);
	else if (item->last)
		collected(c);
}

static void
take_item(struct connection *c, struct batch *b, struct websocket_item *item)
{
	switch (item->event) {
	case WEBSOCKET_EV_DATA:
		take_data(c, b, item);
		break;
	case WEBSOCKET_EV_PING:
		/* Only the newest ping must be answered (RFC 6455 section
		 * 5.5.3). */
		memcpy(c->pong.payload, item->payload, item->len);
		c->pong.len = (uint8_t)item->len;
		c->pong.due = true;
		/* What came before the ping is relayed before the pong is
		 * sent. */
		uplink_write(c, b);
		relay_own_frames(c);
		break;
	case WEBSOCKET_EV_CLOSE:
		uplink_write(c, b);
		connection_close(c, item->close_code, "");
		break;
	case WEBSOCKET_EV_ERROR:
		uplink_write(c, b);
		log_info(
		    "connection %u: %s: %s", c->number, c->peer, item->error);
		connection_close(c, item->close_code, item->error);
		break;
	default:
		break;
	}
}

static size_t
take_frames(struct connection *c, uint8_t *data, size_t len)
{
	struct websocket_item item = { .event = WEBSOCKET_EV_DATA };
	struct batch b;
	size_t at = 0;

	b.n = b.headers_used = 0;
	while (at < len && is_taking(c)) {
		at += websocket_parse(&c->parser, data + at, len - at, &item);
		if (item.event == WEBSOCKET_EV_NEED_MORE)
			break;
		take_item(c, &b, &item);
	}
	uplink_write(c, &b);
	return at;
}

static bool
is_blank(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r' &&
		    p[i] != '\v' && p[i] != '\f')
			return false;
	return true;
}

static void
take_line(struct connection *c, struct batch *b, const uint8_t *p, size_t n)
{
	if (utf8_check(0, p, n) != 0) {
		uplink_write(c, b);
		log_error(0, "stdio: a line that is not UTF-8");
		connection_close(c, WEBSOCKET_CLOSE_BAD_DATA, "");
		return;
	}
	if (n > 0 && p[n - 1] == '\r')
		n--;
	if (is_blank(p, n))
		return;
	if (is_relaying(c))
		batch_message(c, b, p, n);
	else
		handshake_message(c, (char *)(uintptr_t)p, n);
}

/* Handles lines on stdio. An incomplete line is collected in c->message. */
static size_t
take_lines(struct connection *c, uint8_t *data, size_t len)
{
	struct batch b;
	size_t at = 0;

	b.n = b.headers_used = 0;
	while (at < len && is_taking(c)) {
		uint8_t *end = memchr(data + at, '\n', len - at);
		size_t n = end ? (size_t)(end - data) - at : len - at;

		if ((end == NULL || c->message.len > 0) &&
		    !collect(&c->message, data + at, n)) {
			log_error(0, "stdio: a line of more than %llu bytes",
			    (unsigned long long)config.max_message_bytes);
			connection_close(c, WEBSOCKET_CLOSE_TOO_BIG, "");
			break;
		}
		if (end != NULL && c->message.len > 0) {
			struct buf line = collect_take(&c->message);

			take_line(c, &b, line.data, line.len);
			uplink_write(c, &b);
			buf_clear(&line);
		} else if (end != NULL) {
			take_line(c, &b, data + at, n);
		}
		at += n + (end ? 1 : 0);
	}
	uplink_write(c, &b);
	return at;
}

/* Handles bytes of the client, which are frames or lines. Bytes that cannot be
 * handled now are kept in c->kept. */
static void
relay_take_client(struct connection *c, uint8_t *data, size_t len)
{
	size_t at = connection_is_stdio(c) ? take_lines(c, data, len)
					   : take_frames(c, data, len);

	if (at < len && c->state < CONN_LEAVING) {
		buf_put(&c->kept, data + at, len - at);
		connection_read_client(c, false);
	}
	relay_own_frames(c);
	if (c->state == CONN_ATTACHING)
		handshake_attach(c);
}

/* Passes on the end of stdio's input, after everything that was read, so that
 * the runner answers all of it. */
static void
finish_input(struct connection *c)
{
	if (c->input != INPUT_ENDED || c->kept.len > 0 ||
	    pending_bytes(&c->channel.uplink) > 0)
		return;
	if (c->channel.fd >= 0)
		shutdown(c->channel.fd, SHUT_WR);
	else if (c->state == CONN_OPEN)
		connection_close(c, WEBSOCKET_CLOSE_NORMAL, "");
}

void
relay_take_kept(struct connection *c)
{
	struct buf kept = c->kept;

	if (!is_taking(c))
		return;
	connection_read_client(c, true);
	if (kept.len > 0) {
		buf_init(&c->kept, kept.limit);
		relay_take_client(c, kept.data, kept.len);
		buf_clear(&kept);
	}
	finish_input(c);
}

static void
input_ended(struct connection *c)
{
	if (!connection_is_stdio(c) || c->state >= CONN_LEAVING) {
		connection_client_gone(c);
		return;
	}
	c->input = INPUT_ENDED;
	finish_input(c);
}

void
relay_read_client(struct connection *c)
{
	ssize_t n = connection_recv(c, scratch, sizeof(scratch));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	metrics.bytes_received += n > 0 ? (size_t)n : 0;
	if (c->state == CONN_ATTACHED)
		liveness_heard(&c->attached.life);
	if (n <= 0)
		input_ended(c);
	else if (c->state == CONN_HTTP)
		handshake_http(c, (char *)scratch, (size_t)n);
	else if (c->state < CONN_LEAVING)
		relay_take_client(c, scratch, (size_t)n);
	/* A probe is answered at once. */
	if (c->state == CONN_ATTACHED && c->attached.life.probe.asked_ms != 0)
		connection_look(c);
}

/* --- from the runner to the client -------------------------------------- */

/* Sends a pong, but only between two frames and when everything before is
 * written. A client that does not read can thus not make pongs pile up. */
static void
relay_own_frames(struct connection *c)
{
	uint8_t header[WEBSOCKET_HEADER_MAX];
	struct iovec iov[2];

	if (c->out_fd < 0 || connection_is_stdio(c) || !c->pong.due ||
	    c->channel.frame_left > 0 || c->channel.header_len > 0 ||
	    pending_bytes(&c->downlink) > 0)
		return;
	c->pong.due = false;
	iov[0] = (struct iovec){ header,
		websocket_put_header(header, WEBSOCKET_PONG, c->pong.len) };
	iov[1] = (struct iovec){ c->pong.payload, c->pong.len };
	connection_write(c, iov, 2);
}

bool
relay_may_ping(const struct connection *c)
{
	return !connection_is_stdio(c) && c->channel.frame_left == 0 &&
	       pending_bytes(&c->downlink) == 0;
}

void
relay_ping(struct connection *c)
{
	uint8_t header[WEBSOCKET_HEADER_MAX];
	struct iovec iov = { header,
		websocket_put_header(header, WEBSOCKET_PING, 0) };

	connection_write(c, &iov, 1);
}

/* What is sent to the client for one read from the runner. */
struct out_batch {
	struct iovec iov[RELAY_IOV_MAX];
	int n;
	uint8_t headers[RELAY_IOV_MAX][WEBSOCKET_HEADER_MAX];
	int headers_used;
};

static bool
out_add(struct connection *c, struct out_batch *b, void *p, size_t len)
{
	if (b->n == RELAY_IOV_MAX) {
		if (!connection_write(c, b->iov, b->n))
			return false;
		b->n = b->headers_used = 0;
	}
	b->iov[b->n++] = (struct iovec){ p, len };
	return true;
}

/* Adds the header of the client's next frame. */
static bool
out_header(struct connection *c, struct out_batch *b)
{
	uint32_t len = frame_get_length(c->channel.header);
	uint8_t *header;

	/* A header in the batch must be written before its memory is used
	 * again. */
	if (b->n >= RELAY_IOV_MAX - 1) {
		if (!connection_write(c, b->iov, b->n))
			return false;
		b->n = b->headers_used = 0;
	}
	header = b->headers[b->headers_used++];
	return out_add(c, b, header,
	    websocket_put_fragment(header, len, len - c->channel.frame_left,
		&c->channel.fragment_left));
}

/* Begins a frame of the runner. */
static bool
out_begin(struct connection *c)
{
	c->channel.frame_left = frame_get_length(c->channel.header);
	c->channel.header_len = 0;
	if (c->channel.frame_left == 0 ||
	    c->channel.frame_left > RUNNER_FRAME_MAX) {
		log_error(0, "connection %u: impossible frame of the runner",
		    c->number);
		return false;
	}
	/* Who gets lines gets no header. */
	c->channel.fragment_left =
	    connection_is_stdio(c) ? c->channel.frame_left : 0;
	return true;
}

static bool
out_piece(struct connection *c, struct out_batch *b, uint8_t *p, size_t len)
{
	c->channel.frame_left -= (uint32_t)len;
	c->channel.fragment_left -= len;
	if (!out_add(c, b, p, len))
		return false;
	if (connection_is_stdio(c) && c->channel.frame_left == 0)
		return out_add(c, b, (void *)(uintptr_t) "\n", 1);
	return true;
}

/* Returns false if the channel or the client is gone. */
static bool
take_runner(struct connection *c, uint8_t *p, size_t n)
{
	struct out_batch b;
	size_t at = 0;

	b.n = b.headers_used = 0;
	while (at < n) {
		size_t piece = n - at;

		if (c->channel.frame_left > 0) {
			if (c->channel.fragment_left == 0 && !out_header(c, &b))
				return false;
			if (piece > c->channel.fragment_left)
				piece = (size_t)c->channel.fragment_left;
			if (!out_piece(c, &b, p + at, piece))
				return false;
			at += piece;
			continue;
		}
		c->channel.header[c->channel.header_len++] = p[at++];
		if (c->channel.header_len == FRAME_HEADER_BYTES &&
		    !out_begin(c))
			return false;
	}
	return b.n == 0 || connection_write(c, b.iov, b.n);
}

void
relay_read_runner(struct connection *c)
{
	size_t n = connection_read_channel(c, scratch, sizeof(scratch));
	bool starts = c->state == CONN_STARTING;

	if (n == 0)
		return;
	if (c->state >= CONN_CLOSING)
		return; /* nobody is left to read it */
	if (starts)
		handshake_started(c);
	if (take_runner(c, scratch, n)) {
		relay_own_frames(c);
		if (starts)
			relay_take_kept(c);
	} else if (c->channel.fd >= 0 && c->state < CONN_LEAVING) {
		connection_channel_ended(c);
	}
}

void
relay_write_client(struct connection *c)
{
	if (pending_flush(&c->downlink, c->out_fd, c->tls) < 0) {
		connection_client_gone(c);
		return;
	}
	if (pending_bytes(&c->downlink) > 0) {
		connection_await_client(c);
		return;
	}
	relay_own_frames(c);
	connection_read_runner(c, true);
	if (c->state == CONN_OPEN)
		relay_take_kept(c);
}
