/* SPDX-License-Identifier: ISC */
/*
 * The session channel: frames with a u32 length in little-endian order over a
 * stream; descriptors that come with a helper's frames; and long messages that
 * are taken in as they come.
 */
#include "base.h"
#include "channel_direct.h"

#include <event2/event.h>

#include "descriptors.h"
#include "frame.h"
#include "heap.h"
#include "intake.h"
#include "loop.h"
#include "rights.h"

/* --- long messages ------------------------------------------------------ */

/* This much of a message must be there before an intake is asked for. */
#define LOOK_BYTES (256u << 10)

/* Asks for an intake if `parts` holds enough of the message to decide. */
static void
begin_long(struct channel *ch)
{
	size_t n = ch->parts.len - FRAME_HEADER_BYTES;

	if (ch->looked || ch->on->long_message == NULL || n < LOOK_BYTES)
		return;
	ch->looked = true;
	ch->intake = ch->on->long_message(
	    ch, (char *)ch->parts.data + FRAME_HEADER_BYTES, n);
	if (ch->intake == NULL)
		return;
	ch->intake_bytes = (uint32_t)n;
	buf_clear(&ch->parts);
}

static void
end_intake(struct channel *ch)
{
	intake_free(ch->intake);
	ch->intake = NULL;
	ch->intake_bytes = 0;
}

/* Restores the message into `parts`, as if it had always been in memory. */
static int
give_back(struct channel *ch)
{
	const uint8_t header[FRAME_HEADER_BYTES] = { 0 };
	int err;

	buf_put(&ch->parts, header, sizeof(header));
	err = intake_restore(ch->intake, &ch->parts);
	end_intake(ch);
	return err < 0 ? err : -EAGAIN;
}

static void
deliver(struct channel *ch)
{
	struct intake *in = ch->intake;

	/* The message may close the channel. */
	ch->intake = NULL;
	end_intake(ch);
	ch->looked = false;
	ch->spool = intake_take_spool(in);
	channel_deliver(
	    ch, 0, (char *)intake_text(in)->data, intake_text(in)->len);
	intake_free(in);
}

/*
 * Gives the piece to the intake, and delivers the message when it is complete.
 * Returns 0 or -errno. -EAGAIN: the message goes on in `parts` after all, and
 * *p and *len are the rest to put there.
 */
static int
take_long_piece(struct channel *ch, const uint8_t **p, size_t *len, bool more)
{
	size_t taken = intake_add(ch->intake, *p, *len);

	*p += taken;
	*len -= taken;
	ch->intake_bytes += (uint32_t)taken;
	if (*len > 0 || (!more && !intake_finish(ch->intake)))
		return give_back(ch);
	if (!more)
		deliver(ch);
	return 0;
}

/* --- descriptors -------------------------------------------------------- */

/*
 * Tells whether in and out are one socket. Reads and writes of a socket ask
 * never to wait, because others who have it open could set it to block.
 */
static bool
is_socket(const struct channel *ch)
{
	return ch->in_fd == ch->out_fd;
}

static bool
takes_fds(const struct channel *ch)
{
	return ch->takes_fds || ch->hand_over != NULL;
}

/* Like read(2), but also takes descriptors. Returns -errno for an error. */
static ssize_t
receive(struct channel *ch, void *p, size_t n)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(CHANNEL_FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { p, n };
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space) };
	ssize_t got;

	if (ch->hand_over != NULL)
		reserve_give(1);
	if (takes_fds(ch))
		got = recvmsg(ch->in_fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	else if (is_socket(ch))
		got = recv(ch->in_fd, p, n, MSG_DONTWAIT);
	else
		got = read(ch->in_fd, p, n);
	if (got < 0)
		return -errno;
	if (takes_fds(ch))
		rights_take(&m, ch->fds, &ch->nfds, CHANNEL_FDS_MAX);
	/* The descriptor comes with the first bytes, or not at all. */
	if (ch->nfds == 0 && !(m.msg_flags & MSG_CTRUNC))
		ch->hand_over = NULL;
	if (ch->hand_over == NULL || ch->nfds == 1)
		return got;
	/*
	 * Either one socket came, or none did; a handover has no more than one.
	 */
	return ch->nfds == 0 ? -EMFILE : -EBADMSG;
}

static int
next_fd(struct channel *ch)
{
	int fd = -1;

	if (ch->nfds > 0) {
		fd = ch->fds[0];
		memmove(ch->fds, ch->fds + 1, --ch->nfds * sizeof(int));
	}
	return fd;
}

/* --- delivery ----------------------------------------------------------- */

struct spool *
channel_take_spool(struct channel *ch)
{
	struct spool *s = ch->spool;

	ch->spool = NULL;
	return s;
}

void
channel_deliver(struct channel *ch, uint32_t header, char *text, size_t len)
{
	int err;

	if (ch->hand_over != NULL && ch->nfds > 0) {
		err = direct_begin(ch, text, len);
		if (err < 0)
			ch->on->broken(ch, err);
		return;
	}
	if (ch->takes_fds && header & FRAME_SPOOLED)
		ch->spool = spool_adopt(next_fd(ch));
	ch->on->message(ch, text, len);
	/* The owner may have taken it. */
	if (ch->spool != NULL)
		spool_free(channel_take_spool(ch));
}

/* --- the channel -------------------------------------------------------- */

heap_aligned uint8_t channel_scratch[CHANNEL_SCRATCH_BYTES];

static void in_cb(evutil_socket_t fd, short what, void *arg);
static void out_cb(evutil_socket_t fd, short what, void *arg);

static void
watch(struct channel *ch, struct event_base *base, int in_fd, int out_fd)
{
	ch->in_fd = in_fd;
	ch->out_fd = out_fd;
	event_assign(
	    &ch->in_event, base, in_fd, EV_READ | EV_PERSIST, in_cb, ch);
	event_assign(&ch->out_event, base, out_fd, EV_WRITE, out_cb, ch);
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
	end_intake(ch);
	while (ch->nfds > 0)
		close(ch->fds[--ch->nfds]);
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
		err = take_long_piece(ch, &p, &len, more);
		if (err != -EAGAIN)
			return err;
	}
	if (ch->parts.len == 0)
		buf_put(&ch->parts, header, sizeof(header));
	buf_put(&ch->parts, p, len);
	if (more) {
		begin_long(ch);
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
		n = receive(ch, at, want);
		if (n <= 0)
			return n;
		buf_commit(&ch->in, (size_t)n);
		taken = take_kept(ch);
		return taken < 0 ? taken : n;
	}
	n = receive(ch, channel_scratch, sizeof(channel_scratch));
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

/* --- output ------------------------------------------------------------- */

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

	if (ch->direct != NULL && !out->failed)
		direct_finish_message(ch, out, len);
	if (out->failed)
		log_fatal("an answer exceeds %u bytes", OUT_MAX_BYTES);
	if (ch->direct == NULL)
		frame_put_length(out->data + ch->frame_at, (uint32_t)len);
	if (ch->out.len - ch->out_at > FLUSH_BYTES)
		channel_flush(ch);
}

void
channel_relay_begin(struct channel *ch, uint32_t len)
{
	if (ch->direct != NULL)
		ch->direct->relayed = len;
	else
		put_header(ch, &ch->out, len);
	ch->relay_left = len;
}

void
channel_relay(struct channel *ch, const void *p, size_t n)
{
	if (ch->direct != NULL)
		direct_relay(ch, p, n);
	else
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
	if (!is_socket(ch))
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
