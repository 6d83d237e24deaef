/* SPDX-License-Identifier: ISC */
/*
 * The session channel: the WebSocket frames of a client that was handed over
 * (RFC 6455, doc/protocol.md section 1).
 */
#include <string.h>

#include "channel_direct.h"
#include "frame.h"

/* --- what the client sends ---------------------------------------------- */

/*
 * A short message is joined in memory. A message that is long, or may become
 * long, is offered to an intake, as one that the front-end passes on in pieces.
 */
static void
begin_message(struct channel *ch, const struct websocket_item *item)
{
	ch->looked =
	    !item->fragmented && item->message_len < FRAME_PIECES_FROM_BYTES;
	if (ch->looked)
		buf_reserve(
		    &ch->parts, FRAME_HEADER_BYTES + (size_t)item->message_len);
}

static void
take_data(struct channel *ch, const struct websocket_item *item)
{
	/* An empty message is treated as a blank one; both are malformed. */
	bool empty = item->last && item->len == 0 &&
		     ch->parts.len <= FRAME_HEADER_BYTES && ch->intake == NULL;
	char blank[1] = { ' ' };
	uint8_t *p = empty ? (uint8_t *)blank : item->payload;
	size_t len = empty ? 1 : item->len;
	int err;

	if (item->first && item->last) {
		channel_deliver(ch, 0, (char *)p, len);
		return;
	}
	if (item->first)
		begin_message(ch, item);
	err = channel_take_piece(ch, p, len, !item->last);
	if (err < 0)
		ch->on->broken(ch, err);
}

static void
take_ping(struct channel *ch, const struct websocket_item *item)
{
	struct direct *d = ch->direct;

	/* Only the newest ping is answered (RFC 6455 section 5.5.3). */
	memcpy(d->pong, item->payload, item->len);
	d->pong_len = (uint8_t)item->len;
	d->want_pong = true;
	direct_pong(ch);
}

static void
take_item(struct channel *ch, const struct websocket_item *item)
{
	switch (item->event) {
	case WEBSOCKET_EV_DATA:
		take_data(ch, item);
		break;
	case WEBSOCKET_EV_PING:
		take_ping(ch, item);
		break;
	case WEBSOCKET_EV_CLOSE:
		channel_flush(ch);
		if (ch->direct != NULL)
			direct_end(ch, item->close_code, "");
		break;
	case WEBSOCKET_EV_ERROR:
		channel_flush(ch);
		if (ch->direct != NULL)
			direct_end(ch, item->close_code, item->error);
		break;
	default:
		break;
	}
}

size_t
direct_take(struct channel *ch, uint8_t *p, size_t n)
{
	struct websocket_item item;
	size_t at = 0;

	while (at < n && ch->direct != NULL && !ch->ended &&
	       !channel_is_behind(ch)) {
		at +=
		    websocket_parse(&ch->direct->parser, p + at, n - at, &item);
		if (item.event == WEBSOCKET_EV_NEED_MORE)
			break;
		take_item(ch, &item);
	}
	return at;
}

/* --- what it is sent ---------------------------------------------------- */

void
direct_begin_frame(struct buf *out, size_t len)
{
	uint8_t header[WEBSOCKET_HEADER_MAX];

	buf_put(out, header, websocket_put_header(header, WEBSOCKET_TEXT, len));
}

/*
 * Unused room before the header is skipped if this frame is the next to be
 * written; otherwise the frame is moved.
 */
void
direct_finish_frame(struct channel *ch, struct buf *out, size_t len)
{
	uint8_t header[WEBSOCKET_HEADER_MAX];
	uint8_t *at = out->data + ch->frame_at;
	size_t n = websocket_put_header(header, WEBSOCKET_TEXT, len);
	size_t unused = sizeof(header) - n;

	if (unused > 0 && out == &ch->out && ch->out_at == ch->frame_at) {
		ch->out_at += unused;
		at += unused;
	} else if (unused > 0) {
		memmove(at + n, at + sizeof(header), len);
		out->len -= unused;
	}
	memcpy(at, header, n);
}

static void
put_control(
    struct channel *ch, enum websocket_opcode opcode, const void *p, size_t n)
{
	uint8_t header[WEBSOCKET_HEADER_MAX];

	buf_put(&ch->out, header, websocket_put_header(header, opcode, n));
	buf_put(&ch->out, p, n);
}

/*
 * No pong is sent while the channel is congested, so pongs cannot pile up for a
 * client that does not read.
 */
void
direct_pong(struct channel *ch)
{
	struct direct *d = ch->direct;

	if (!d->want_pong || d->over || channel_congested(ch))
		return;
	d->want_pong = false;
	put_control(ch, WEBSOCKET_PONG, d->pong, d->pong_len);
}

void
direct_ping(struct channel *ch)
{
	if (channel_congested(ch))
		return;
	if (ch->direct->pinged_ms == 0)
		ch->direct->pinged_ms = now_ms();
	put_control(ch, WEBSOCKET_PING, "", 0);
}

uint64_t
direct_frame_bytes(const uint8_t *p)
{
	uint64_t len = p[1];
	size_t n = len == 126 ? 2 : len == 127 ? 8 : 0;

	for (size_t i = 0; i < n; i++)
		len = (i ? len << 8 : 0) | p[2 + i];
	return 2 + n + len;
}
