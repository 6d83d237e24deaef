/* SPDX-License-Identifier: ISC */
/* The session channel: output. */
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel_direct.h"
#include "frame.h"
#include "log.h"
#include "loop.h"

/* With more than this composed, frames are written before the turn ends. */
#define FLUSH_BYTES (256u << 10)

/* A larger buffer is freed when it is empty. */
#define OUT_KEEP_BYTES (64u << 10)

/* The buffer of the next message. */
static struct buf *
composing(struct channel *ch)
{
	return ch->relay_left > 0 ? &ch->held : &ch->out;
}

static size_t
header_bytes(const struct channel *ch)
{
	if (ch->direct != NULL)
		return WEBSOCKET_HEADER_MAX;
	return ch->tagged ? FRAME_TAGGED_BYTES : FRAME_HEADER_BYTES;
}

static void
put_header(struct channel *ch, struct buf *out, uint32_t len)
{
	uint8_t header[WEBSOCKET_HEADER_MAX] = { 0 };

	frame_put_length(header, len);
	frame_put_length(header + FRAME_HEADER_BYTES, ch->tag);
	buf_put(out, header, header_bytes(ch));
}

struct json_writer
channel_begin(struct channel *ch)
{
	struct json_writer w;
	struct buf *out = composing(ch);

	ch->frame_at = out->len;
	put_header(ch, out, 0);
	json_writer_init(&w, out);
	return w;
}

void
channel_send(struct channel *ch)
{
	struct buf *out = composing(ch);
	size_t len = out->len - ch->frame_at - header_bytes(ch);

	if (out->failed)
		log_fatal("an answer exceeds %u bytes", OUT_MAX_BYTES);
	if (ch->direct != NULL)
		direct_finish_frame(ch, out, len);
	else
		frame_put_length(out->data + ch->frame_at, (uint32_t)len);
	if (ch->out.len - ch->out_at > FLUSH_BYTES)
		channel_flush(ch);
}

void
channel_relay_begin(struct channel *ch, uint32_t len)
{
	if (ch->direct != NULL)
		direct_begin_frame(&ch->out, len);
	else
		put_header(ch, &ch->out, len);
	ch->relay_left = len;
}

void
channel_relay(struct channel *ch, const void *p, size_t n)
{
	buf_put(&ch->out, p, n);
	ch->relay_left -= (uint32_t)n;
	if (ch->relay_left > 0 || ch->held.len == 0)
		return;
	buf_put(&ch->out, ch->held.data, ch->held.len);
	buf_clear(&ch->held);
}

void
channel_write_all(struct channel *ch)
{
	while (channel_is_open(ch) && !channel_drained(ch)) {
		struct pollfd pfd = { .fd = ch->out_fd, .events = POLLOUT };

		channel_flush(ch);
		if (channel_is_open(ch) && !channel_drained(ch))
			poll(&pfd, 1, -1);
	}
}

/*
 * Nobody reads any more, so the output is dropped. A relayed frame still runs
 * to its end.
 */
void
channel_discard_output(struct channel *ch)
{
	buf_clear(&ch->out);
	buf_clear(&ch->held);
	ch->out_at = 0;
	ch->want_write = false;
}

static void
after_write(struct channel *ch)
{
	bool was = ch->want_write;

	if (ch->out_at == ch->out.len) {
		ch->out.len = ch->out_at = 0;
		if (ch->out.cap > OUT_KEEP_BYTES)
			buf_clear(&ch->out);
		ch->want_write = false;
	} else {
		/*
		 * The written part is removed once it is the larger part of the
		 * buffer.
		 */
		if (ch->out_at > ch->out.len / 2) {
			buf_consume(&ch->out, ch->out_at);
			ch->out_at = 0;
		}
		ch->want_write = true;
		loop_add(&ch->out_event, NULL);
	}
	channel_review_reading(ch);
	if (was && !ch->want_write)
		ch->on->drained(ch);
	if (ch->direct != NULL && channel_drained(ch))
		direct_drained(ch);
}

/* Like write(2). A socket never blocks, even if others set it to block. */
static ssize_t
write_some(struct channel *ch, const uint8_t *p, size_t n)
{
	if (!channel_is_socket(ch))
		return write(ch->out_fd, p, n);
	if (ch->direct != NULL)
		direct_writing(ch);
	return send(ch->out_fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void
break_off(struct channel *ch, int err)
{
	if (ch->direct != NULL) {
		direct_lose(ch);
		return;
	}
	channel_discard_output(ch);
	ch->relay_left = 0;
	ch->on->broken(ch, err);
}

static bool
is_heard(const struct channel *ch)
{
	return channel_is_open(ch) &&
	       (ch->direct == NULL || !(ch->direct->over || ch->direct->lost));
}

void
channel_flush(struct channel *ch)
{
	const uint8_t *p;
	ssize_t n;

	if (!is_heard(ch))
		channel_discard_output(ch);
	if (ch->out_at == ch->out.len)
		return;
	p = ch->out.data + ch->out_at;
	n = write_some(ch, p, ch->out.len - ch->out_at);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		break_off(ch, -errno);
		return;
	}
	if (n > 0 && ch->direct != NULL)
		direct_written(ch, p, (size_t)n);
	if (n > 0)
		ch->out_at += (size_t)n;
	after_write(ch);
}

void
channel_out_cb(evutil_socket_t fd, short what, void *arg)
{
	channel_flush(arg);
}

bool
channel_congested(const struct channel *ch)
{
	return ch->want_write || ch->relay_left > 0;
}

bool
channel_drained(const struct channel *ch)
{
	return ch->out_at == ch->out.len;
}
