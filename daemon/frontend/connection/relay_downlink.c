/* SPDX-License-Identifier: ISC */
/*
 * The relay's direction from the runner to the client (relay.h): frames with a
 * length become WebSocket frames or lines.
 */
#include "relay.h"

#include "frontend.h"
#include "handshake.h"
#include "log.h"

/* Sends a pong, but only between two frames and when everything before is
 * written. A client that does not read can thus not make pongs pile up. */
void
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

void
relay_ping(struct connection *c)
{
	uint8_t header[WEBSOCKET_HEADER_MAX];
	struct iovec iov = { header,
		websocket_put_header(header, WEBSOCKET_PING, 0) };

	if (c->channel.frame_left > 0 || pending_bytes(&c->downlink) > 0)
		return;
	if (c->attached.pinged_ms == 0)
		c->attached.pinged_ms = now_ms();
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

/* Begins a frame and adds its header for the client, unless that gets lines. */
static bool
out_begin(struct connection *c, struct out_batch *b)
{
	uint8_t *header;

	c->channel.frame_left = frame_get_length(c->channel.header);
	c->channel.header_len = 0;
	if (c->channel.frame_left == 0 ||
	    c->channel.frame_left > RUNNER_FRAME_MAX) {
		log_error(0, "connection %u: impossible frame of the runner",
		    c->number);
		return false;
	}
	if (connection_is_stdio(c))
		return true;
	/* A header in the batch must be written before its memory is used
	 * again. */
	if (b->n >= RELAY_IOV_MAX - 1) {
		if (!connection_write(c, b->iov, b->n))
			return false;
		b->n = b->headers_used = 0;
	}
	header = b->headers[b->headers_used++];
	return out_add(c, b, header,
	    websocket_put_header(
		header, WEBSOCKET_TEXT, c->channel.frame_left));
}

static bool
out_piece(struct connection *c, struct out_batch *b, uint8_t *p, size_t len)
{
	c->channel.frame_left -= (uint32_t)len;
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
			if (piece > c->channel.frame_left)
				piece = c->channel.frame_left;
			if (!out_piece(c, &b, p + at, piece))
				return false;
			at += piece;
			continue;
		}
		c->channel.header[c->channel.header_len++] = p[at++];
		if (c->channel.header_len == FRAME_HEADER_BYTES &&
		    !out_begin(c, &b))
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
