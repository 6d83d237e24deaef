/*
 * The session channel: u32-LE length-prefixed frames over a stream.
 */
#include "channel.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frame.h"
#include "log.h"
#include "util.h"

/* Input is read into one place for all, so that an idle channel holds none. */
#define SCRATCH_BYTES (128u << 10)
static uint8_t scratch[SCRATCH_BYTES];

/* Frames composed beyond this leave before the turn ends. */
#define FLUSH_BYTES (256u << 10)

/* With so much unwritten, no further request is taken: a client that asks
 * without listening stops itself. */
#define OUT_PAUSE_BYTES (4u << 20)

/* The largest answer (1 MiB of retained output, in base64, many times over). */
#define OUT_MAX_BYTES (1u << 30)

/* A buffer this large is given back when it is empty. */
#define OUT_KEEP_BYTES (64u << 10)

static void in_cb(evutil_socket_t fd, short what, void *arg);
static void out_cb(evutil_socket_t fd, short what, void *arg);

void
channel_open(struct channel *ch, struct event_base *base, int in_fd, int out_fd,
    uint32_t max_message, const struct channel_events *on, void *owner)
{
	*ch = (struct channel){ .on = on,
		.owner = owner,
		.in_fd = in_fd,
		.out_fd = out_fd,
		.max_message = max_message,
		.reading = true };
	buf_init(
	    &ch->in, (size_t)max_message + FRAME_HEADER_BYTES + SCRATCH_BYTES);
	buf_init(&ch->out, OUT_MAX_BYTES);
	buf_init(&ch->held, OUT_MAX_BYTES);
	set_nonblock(in_fd);
	set_nonblock(out_fd);
	event_assign(
	    &ch->in_event, base, in_fd, EV_READ | EV_PERSIST, in_cb, ch);
	event_assign(&ch->out_event, base, out_fd, EV_WRITE, out_cb, ch);
	event_add(&ch->in_event, NULL);
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
	event_del(&ch->in_event);
	event_del(&ch->out_event);
	if (ch->out_fd != ch->in_fd)
		close(ch->out_fd);
	close(ch->in_fd);
	ch->in_fd = ch->out_fd = -1;
	buf_clear(&ch->in);
	buf_clear(&ch->out);
	buf_clear(&ch->held);
	ch->out_at = 0;
	ch->relay_left = 0;
	ch->want_write = false;
}

/* The peer asks without listening, or the owner has enough. */
static bool
is_behind(const struct channel *ch)
{
	return ch->paused ||
	       ch->out.len - ch->out_at + ch->held.len >= OUT_PAUSE_BYTES;
}

/* Is there a frame to take without reading, good or bad? */
static bool
has_kept_frame(const struct channel *ch)
{
	uint32_t len;

	if (ch->in.len < FRAME_HEADER_BYTES)
		return false;
	len = frame_get_length(ch->in.data);
	return len == 0 || len > ch->max_message ||
	       ch->in.len - FRAME_HEADER_BYTES >= len;
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
	event_add(&ch->in_event, NULL);
	/* The socket does not tell of what was read before the pause. */
	if (has_kept_frame(ch))
		event_active(&ch->in_event, EV_READ, 0);
}

void
channel_stop_reading(struct channel *ch)
{
	set_reading(ch, false);
	ch->ended = true;
}

/*
 * Takes the whole frames at the front of p. Returns the bytes taken, or a
 * negative errno for a frame that must not be. Stops early when a message
 * closed the channel, or the answers so far are all that may wait.
 */
static ssize_t
take_frames(struct channel *ch, uint8_t *p, size_t n)
{
	size_t at = 0;

	while (n - at >= FRAME_HEADER_BYTES) {
		uint32_t len = frame_get_length(p + at);

		if (len == 0 || len > ch->max_message)
			return len == 0 ? -EBADMSG : -EMSGSIZE;
		if (n - at - FRAME_HEADER_BYTES < len)
			break;
		at += FRAME_HEADER_BYTES;
		ch->on->message(ch, (char *)p + at, len);
		at += len;
		if (!channel_is_open(ch) || ch->ended || is_behind(ch))
			break;
	}
	return (ssize_t)at;
}

/* The frame began earlier: more of it is behind what was kept. */
static ssize_t
take_kept(struct channel *ch)
{
	struct buf kept = ch->in;
	ssize_t n;

	/* A message may close the channel, and that clears ch->in. */
	buf_init(&ch->in, kept.limit);
	n = take_frames(ch, kept.data, kept.len);
	if (n >= 0 && channel_is_open(ch) && (size_t)n < kept.len) {
		buf_consume(&kept, (size_t)n);
		ch->in = kept;
		return n;
	}
	buf_clear(&kept);
	return n;
}

/* How much to read: up to the end of the frame under way and no further, so
 * that what is kept never holds more than one frame. */
static size_t
wanted(const struct channel *ch)
{
	uint32_t len;

	if (ch->in.len < FRAME_HEADER_BYTES)
		return FRAME_HEADER_BYTES - ch->in.len;
	len = frame_get_length(ch->in.data);
	if (len == 0 || len > ch->max_message)
		return 0;
	len = len + FRAME_HEADER_BYTES - (uint32_t)ch->in.len;
	return len < SCRATCH_BYTES ? len : SCRATCH_BYTES;
}

static ssize_t
read_some(struct channel *ch)
{
	ssize_t n, taken;

	if (is_behind(ch))
		return -EAGAIN;
	if (has_kept_frame(ch))
		return take_kept(ch);
	if (ch->in.len > 0) {
		size_t want = wanted(ch);
		uint8_t *at = want ? buf_reserve(&ch->in, want) : NULL;

		if (at == NULL)
			return -EMSGSIZE;
		n = read(ch->in_fd, at, want);
		if (n <= 0)
			return n < 0 ? -errno : 0;
		buf_commit(&ch->in, (size_t)n);
		taken = take_kept(ch);
		return taken < 0 ? taken : n;
	}
	n = read(ch->in_fd, scratch, sizeof(scratch));
	if (n <= 0)
		return n < 0 ? -errno : 0;
	taken = take_frames(ch, scratch, (size_t)n);
	if (taken < 0)
		return taken;
	if (channel_is_open(ch) && !ch->ended && taken < n)
		buf_put(&ch->in, scratch + taken, (size_t)(n - taken));
	return n;
}

static void
in_cb(evutil_socket_t fd, short what, void *arg)
{
	struct channel *ch = arg;
	ssize_t n = read_some(ch);

	if (channel_is_open(ch) && is_behind(ch))
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

/* Where the next message goes. */
static struct buf *
composing(struct channel *ch)
{
	return ch->relay_left > 0 ? &ch->held : &ch->out;
}

static size_t
header_bytes(const struct channel *ch)
{
	return ch->tagged ? FRAME_TAGGED_BYTES : FRAME_HEADER_BYTES;
}

static void
put_header(struct channel *ch, struct buf *out, uint32_t len)
{
	uint8_t header[FRAME_TAGGED_BYTES];

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
	frame_put_length(out->data + ch->frame_at, (uint32_t)len);
	if (ch->out.len - ch->out_at > FLUSH_BYTES)
		channel_flush(ch);
}

void
channel_relay_begin(struct channel *ch, uint32_t len)
{
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

void
channel_pause(struct channel *ch, bool paused)
{
	ch->paused = paused;
	if (channel_is_open(ch))
		set_reading(ch, !is_behind(ch));
}

/* Nobody listens any more: what they do not read is not kept. */
static void
discard_output(struct channel *ch)
{
	buf_clear(&ch->out);
	buf_clear(&ch->held);
	ch->out_at = 0;
	ch->relay_left = 0;
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
		/* The front is dropped when it is the larger part. */
		if (ch->out_at > ch->out.len / 2) {
			buf_consume(&ch->out, ch->out_at);
			ch->out_at = 0;
		}
		ch->want_write = true;
		event_add(&ch->out_event, NULL);
	}
	if (!ch->ended)
		set_reading(ch, !is_behind(ch));
	if (was && !ch->want_write)
		ch->on->drained(ch);
}

void
channel_flush(struct channel *ch)
{
	ssize_t n;

	if (!channel_is_open(ch))
		discard_output(ch);
	if (ch->out_at == ch->out.len)
		return;
	n = write(
	    ch->out_fd, ch->out.data + ch->out_at, ch->out.len - ch->out_at);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		int err = -errno;

		discard_output(ch);
		ch->on->broken(ch, err);
		return;
	}
	if (n > 0)
		ch->out_at += (size_t)n;
	after_write(ch);
}

static void
out_cb(evutil_socket_t fd, short what, void *arg)
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
