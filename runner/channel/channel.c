/* SPDX-License-Identifier: ISC */
/*
 * The session channel: frames with a u32 length in little-endian order over a
 * stream.
 */
#include "channel_direct.h"

#include <errno.h>
#include <event2/event.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frame.h"
#include "heap.h"
#include "log.h"
#include "loop.h"
#include "util.h"

heap_aligned uint8_t channel_scratch[CHANNEL_SCRATCH_BYTES];

static void in_cb(evutil_socket_t fd, short what, void *arg);

static void
watch(struct channel *ch, struct event_base *base, int in_fd, int out_fd)
{
	ch->in_fd = in_fd;
	ch->out_fd = out_fd;
	event_assign(
	    &ch->in_event, base, in_fd, EV_READ | EV_PERSIST, in_cb, ch);
	event_assign(
	    &ch->out_event, base, out_fd, EV_WRITE, channel_out_cb, ch);
	loop_add(&ch->in_event, NULL);
	ch->reading = true;
}

void
channel_watch(struct channel *ch, int fd)
{
	struct event_base *base = event_get_base(&ch->in_event);

	event_del(&ch->in_event);
	event_del(&ch->out_event);
	watch(ch, base, fd, fd);
}

void
channel_open(struct channel *ch, struct event_base *base, int in_fd, int out_fd,
    uint32_t max_message, const struct channel_events *on, void *owner)
{
	*ch = (struct channel){
		.on = on, .owner = owner, .max_message = max_message
	};
	buf_init(&ch->in,
	    (size_t)max_message + FRAME_HEADER_BYTES + CHANNEL_SCRATCH_BYTES);
	buf_init(&ch->parts, (size_t)max_message + FRAME_HEADER_BYTES);
	buf_init(&ch->out, OUT_MAX_BYTES);
	buf_init(&ch->held, OUT_MAX_BYTES);
	heap_scratch(channel_scratch, sizeof(channel_scratch));
	set_nonblock(in_fd);
	if (out_fd != in_fd)
		set_nonblock(out_fd);
	watch(ch, base, in_fd, out_fd);
}

void
channel_look(struct channel *ch)
{
	event_active(&ch->in_event, EV_READ, 0);
}

bool
channel_is_open(const struct channel *ch)
{
	return ch->in_fd >= 0;
}

void
channel_close(struct channel *ch)
{
	if (!channel_is_open(ch))
		return;
	direct_free(ch);
	event_del(&ch->in_event);
	event_del(&ch->out_event);
	if (ch->out_fd != ch->in_fd)
		close(ch->out_fd);
	close(ch->in_fd);
	ch->in_fd = ch->out_fd = -1;
	channel_discard_input(ch);
	channel_discard_output(ch);
	ch->relay_left = 0;
}

void
channel_discard_input(struct channel *ch)
{
	buf_clear(&ch->in);
	buf_clear(&ch->parts);
	channel_long_clear(ch);
}

bool
channel_is_socket(const struct channel *ch)
{
	return ch->in_fd == ch->out_fd;
}

bool
channel_is_behind(const struct channel *ch)
{
	return ch->paused || (ch->direct != NULL && ch->direct->reclaimed) ||
	       ch->out.len - ch->out_at + ch->held.len >= OUT_PAUSE_BYTES;
}

/* Returns the payload's length, or -errno if the frame breaks the rules. */
static ssize_t
payload_bytes(const struct channel *ch, const uint8_t *header)
{
	uint32_t len = frame_get_length(header) & ~FRAME_MORE;
	size_t before = ch->parts.len > 0 ? ch->parts.len - FRAME_HEADER_BYTES
					  : ch->intake_bytes;

	if (len == 0 && before == 0)
		return -EBADMSG;
	return len > ch->max_message - before ? -EMSGSIZE : (ssize_t)len;
}

/*
 * Tells whether a frame is complete without further reading. A bad frame
 * counts.
 */
static bool
has_kept_frame(const struct channel *ch)
{
	ssize_t len;

	if (ch->direct != NULL)
		return ch->in.len > 0;
	if (ch->in.len < FRAME_HEADER_BYTES)
		return false;
	len = payload_bytes(ch, ch->in.data);
	return len < 0 || ch->in.len - FRAME_HEADER_BYTES >= (size_t)len;
}

static void
set_reading(struct channel *ch, bool reading)
{
	if (ch->reading == reading || ch->ended)
		return;
	ch->reading = reading;
	if (!reading) {
		event_del(&ch->in_event);
		return;
	}
	loop_add(&ch->in_event, NULL);
	/* No event comes for what was read before the pause. */
	if (has_kept_frame(ch))
		event_active(&ch->in_event, EV_READ, 0);
}

void
channel_review_reading(struct channel *ch)
{
	if (channel_is_open(ch))
		set_reading(ch, !channel_is_behind(ch));
}

void
channel_pause(struct channel *ch, bool paused)
{
	ch->paused = paused;
	channel_review_reading(ch);
}

bool
channel_take_frame(struct channel *ch, const char *text, struct buf *frame)
{
	if (ch->whole == NULL ||
	    (uint8_t *)text != ch->whole->data + FRAME_HEADER_BYTES)
		return false;
	*frame = *ch->whole;
	buf_init(ch->whole, frame->limit);
	return true;
}

void
channel_stop_reading(struct channel *ch)
{
	set_reading(ch, false);
	ch->ended = true;
}

/* Delivers a frame that has a buffer of its own, so the owner can keep it. */
static void
deliver_whole(struct channel *ch, struct buf *frame)
{
	ch->whole = frame;
	channel_deliver(ch, frame_get_length(frame->data),
	    (char *)frame->data + FRAME_HEADER_BYTES,
	    frame->len - FRAME_HEADER_BYTES);
	ch->whole = NULL;
}

int
channel_take_piece(struct channel *ch, const uint8_t *p, size_t len, bool more)
{
	const uint8_t header[FRAME_HEADER_BYTES] = { 0 };
	struct buf frame;
	int err;

	if (ch->intake != NULL) {
		err = channel_long_piece(ch, &p, &len, more);
		if (err != -EAGAIN)
			return err;
	}
	if (ch->parts.len == 0)
		buf_put(&ch->parts, header, sizeof(header));
	buf_put(&ch->parts, p, len);
	if (more) {
		channel_long_begin(ch);
		return 0;
	}
	ch->looked = false;
	frame = ch->parts;
	buf_init(&ch->parts, frame.limit);
	frame_put_length(
	    frame.data, (uint32_t)(frame.len - FRAME_HEADER_BYTES));
	deliver_whole(ch, &frame);
	buf_clear(&frame);
	return 0;
}

/*
 * Takes the complete frames at the front of p. Returns the bytes taken, or
 * -errno for a frame that breaks the rules. Stops early if a message closed the
 * channel, or if as many answers wait as may.
 */
static ssize_t
take_frames(struct channel *ch, uint8_t *p, size_t n)
{
	size_t at = 0;

	while (n - at >= FRAME_HEADER_BYTES) {
		uint32_t header = frame_get_length(p + at);
		bool more = !ch->takes_fds && header & FRAME_MORE;
		ssize_t len = payload_bytes(ch, p + at);
		int err = 0;

		if (len < 0)
			return len;
		if (n - at - FRAME_HEADER_BYTES < (size_t)len)
			break;
		at += FRAME_HEADER_BYTES;
		if (more || ch->parts.len > 0 || ch->intake != NULL)
			err = channel_take_piece(ch, p + at, (size_t)len, more);
		else
			channel_deliver(
			    ch, header, (char *)p + at, (size_t)len);
		if (err < 0)
			return err;
		at += (size_t)len;
		if (!channel_is_open(ch) || ch->ended || ch->direct != NULL ||
		    channel_is_behind(ch))
			break;
	}
	/* A front-end that handed its client over must send nothing more. */
	if (ch->direct != NULL && at < n)
		return -EBADMSG;
	return (ssize_t)at;
}

/* Takes a frame that began in an earlier read and is in ch->in. */
static ssize_t
take_kept(struct channel *ch)
{
	struct buf kept = ch->in;
	ssize_t n = payload_bytes(ch, kept.data);

	/* A message may close the channel, which clears ch->in. */
	buf_init(&ch->in, kept.limit);
	if (n > 0 && kept.len == FRAME_HEADER_BYTES + (size_t)n &&
	    ch->parts.len == 0 && ch->intake == NULL &&
	    (ch->takes_fds || !(frame_get_length(kept.data) & FRAME_MORE))) {
		n = (ssize_t)kept.len;
		deliver_whole(ch, &kept);
		buf_clear(&kept);
		return n;
	}
	n = take_frames(ch, kept.data, kept.len);
	if (n >= 0 && channel_is_open(ch) && (size_t)n < kept.len) {
		buf_consume(&kept, (size_t)n);
		ch->in = kept;
		return n;
	}
	buf_clear(&kept);
	return n;
}

/*
 * Returns how much to read: up to the end of the current frame, so that ch->in
 * never holds more than one frame.
 */
static size_t
wanted(const struct channel *ch)
{
	ssize_t len;

	if (ch->in.len < FRAME_HEADER_BYTES)
		return FRAME_HEADER_BYTES - ch->in.len;
	len = payload_bytes(ch, ch->in.data);
	return len < 0 ? 0 : (size_t)len + FRAME_HEADER_BYTES - ch->in.len;
}

static ssize_t
read_some(struct channel *ch)
{
	ssize_t n, taken;

	if (ch->direct != NULL)
		return direct_read(ch);
	if (channel_is_behind(ch))
		return -EAGAIN;
	if (has_kept_frame(ch))
		return take_kept(ch);
	if (ch->in.len > 0) {
		size_t want = wanted(ch);
		uint8_t *at = want ? buf_reserve(&ch->in, want) : NULL;

		if (at == NULL)
			return -EMSGSIZE;
		n = channel_recv(ch, at, want);
		if (n <= 0)
			return n;
		buf_commit(&ch->in, (size_t)n);
		taken = take_kept(ch);
		return taken < 0 ? taken : n;
	}
	n = channel_recv(ch, channel_scratch, sizeof(channel_scratch));
	if (n <= 0)
		return n;
	taken = take_frames(ch, channel_scratch, (size_t)n);
	if (taken < 0)
		return taken;
	if (channel_is_open(ch) && !ch->ended && taken < n)
		buf_put(&ch->in, channel_scratch + taken, (size_t)(n - taken));
	return n;
}

static void
in_cb(evutil_socket_t fd, short what, void *arg)
{
	struct channel *ch = arg;
	ssize_t n = read_some(ch);

	if (channel_is_open(ch) && channel_is_behind(ch))
		set_reading(ch, false);
	if (n == -EAGAIN || n == -EINTR || !channel_is_open(ch))
		return;
	if (n == 0) {
		if (ch->in.len > 0)
			log_debug("channel ended inside a frame");
		channel_stop_reading(ch);
		ch->on->ended(ch);
	} else if (n < 0) {
		ch->on->broken(ch, (int)n);
	}
}
