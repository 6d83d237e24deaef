/* SPDX-License-Identifier: ISC */
/*
 * The session channel of a client that was handed over, from the handover until
 * the client is given back, and its WebSocket frames (RFC 6455, doc/protocol.md
 * section 1).
 */
#include "channel_direct.h"

#include <event2/event.h>

#include "control.h"
#include "frame.h"
#include "loop.h"

/* Before the server stops, a client has this long to take what it was sent. */
#define RECLAIM_MS 1500

/* --- what it is sent ---------------------------------------------------- */

void
direct_relay(struct channel *ch, const void *p, size_t n)
{
	uint8_t header[WEBSOCKET_HEADER_MAX];
	struct direct *d = ch->direct;
	uint32_t at = d->relayed - ch->relay_left;

	for (size_t done = 0, piece; done < n; done += piece) {
		if (d->fragment_left == 0)
			buf_put(&ch->out, header,
			    websocket_put_fragment(header, d->relayed,
				at + done, &d->fragment_left));
		piece = n - done < d->fragment_left ? n - done
						    : (size_t)d->fragment_left;
		buf_put(&ch->out, (const uint8_t *)p + done, piece);
		d->fragment_left -= piece;
	}
}

/*
 * Moves the fragments of a composed message apart, the last one first, so that
 * there is room for the headers between them.
 */
static void
split(struct channel *ch, struct buf *out, size_t len)
{
	const size_t pieces =
	    (len + WEBSOCKET_FRAGMENT_MAX - 1) / WEBSOCKET_FRAGMENT_MAX;
	uint8_t header[WEBSOCKET_HEADER_MAX], *from, *to;
	size_t room = 0, n;
	uint64_t payload;

	for (size_t i = 1; i < pieces; i++)
		room += websocket_put_fragment(
		    header, len, i * WEBSOCKET_FRAGMENT_MAX, &payload);
	if (buf_reserve(out, room) == NULL)
		return; /* out->failed, which the caller tells */
	buf_commit(out, room);
	from = out->data + ch->frame_at + WEBSOCKET_HEADER_MAX;
	to = from + room;
	for (size_t i = pieces; i-- > 0;) {
		n = websocket_put_fragment(
		    header, len, i * WEBSOCKET_FRAGMENT_MAX, &payload);
		memmove(to + i * WEBSOCKET_FRAGMENT_MAX,
		    from + i * WEBSOCKET_FRAGMENT_MAX, (size_t)payload);
		to -= n;
		memcpy(to + i * WEBSOCKET_FRAGMENT_MAX, header, n);
	}
}

/*
 * Unused room before the header is skipped if this frame is the next to be
 * written; otherwise the frame is moved.
 */
void
direct_finish_message(struct channel *ch, struct buf *out, size_t len)
{
	uint8_t header[WEBSOCKET_HEADER_MAX];
	uint8_t *at = out->data + ch->frame_at;
	size_t n = websocket_put_header(header, WEBSOCKET_TEXT, len);
	size_t unused = sizeof(header) - n;

	if (len > WEBSOCKET_WHOLE_MAX) {
		split(ch, out, len);
		return;
	}
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
static void
direct_pong(struct channel *ch)
{
	struct direct *d = ch->direct;

	if (!d->want_pong || d->over || channel_congested(ch))
		return;
	d->want_pong = false;
	put_control(ch, WEBSOCKET_PONG, d->pong, d->pong_len);
}

/* Returns the length in bytes of the frame that begins at p. */
static uint64_t
direct_frame_bytes(const uint8_t *p)
{
	uint64_t len = p[1];
	size_t n = len == 126 ? 2 : len == 127 ? 8 : 0;

	for (size_t i = 0; i < n; i++)
		len = (i ? len << 8 : 0) | p[2 + i];
	return 2 + n + len;
}

/* --- reports ------------------------------------------------------------ */

/* Reports are a few bytes, so the front-end either reads them or is gone. */
static void
report(struct channel *ch, struct control_client *c)
{
	const uint8_t room[FRAME_HEADER_BYTES] = { 0 };
	struct direct *d = ch->direct;
	struct buf b;
	ssize_t n;

	c->received = d->received;
	c->sent = d->sent;
	d->received = d->sent = 0;
	buf_init(&b, FRAME_HEADER_BYTES + CONTROL_MESSAGE_MAX);
	buf_put(&b, room, sizeof(room));
	control_put(&b, CHANNEL_CLIENT, c);
	frame_put_length(b.data, (uint32_t)(b.len - FRAME_HEADER_BYTES));
	n = send(d->channel_fd, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n != (ssize_t)b.len) {
		if (n >= 0 || (errno != EPIPE && errno != ECONNRESET))
			log_error(n < 0 ? -errno : 0,
			    "session channel: a report was lost");
		shutdown(d->channel_fd, SHUT_RDWR);
	}
	buf_clear(&b);
}

static void
report_event(struct channel *ch, enum client_event event)
{
	struct control_client c = { .event = event };

	report(ch, &c);
}

/* --- the end ------------------------------------------------------------ */

static void
close_cb(evutil_socket_t none, short what, void *arg)
{
	close((int)(intptr_t)arg);
}

/*
 * libevent removes events from epoll(7) only in the next turn of the loop, by
 * number. If the number were closed before, the events of the socket, which the
 * front-end has open too, would be reported for ever.
 */
static void
close_later(struct event_base *base, int fd)
{
	/* A timeout of zero would come in this turn. */
	const struct timeval soon = { 0, 1 };

	errno = ENOMEM;
	if (event_base_once(base, -1, EV_TIMEOUT, close_cb,
		(void *)(intptr_t)fd, &soon) < 0)
		log_fatal_errno(-errno, "event loop: cannot close later");
}

/*
 * Inside a half written frame no other frame may be sent, not even a close
 * frame.
 */
static void
let_go(struct channel *ch)
{
	struct direct *d = ch->direct;

	event_del(&ch->in_event);
	event_del(&ch->out_event);
	event_del(&d->channel_event);
	event_del(&d->timer);
	if (d->left > 0)
		shutdown(ch->in_fd, SHUT_RDWR);
	close_later(event_get_base(&ch->in_event), ch->in_fd);
	ch->in_fd = ch->out_fd = d->channel_fd;
	d->over = true;
}

void
direct_free(struct channel *ch)
{
	struct direct *d = ch->direct;

	if (d == NULL)
		return;
	if (!d->over)
		let_go(ch);
	ch->direct = NULL;
	free(d);
}

/* Later answers are dropped, and nobody waits for room any more. */
static void
direct_end(struct channel *ch, uint16_t close_code, const char *reason)
{
	struct control_client c = { .event = CLIENT_ENDED,
		.close_code = close_code };
	bool was_full = ch->want_write || ch->direct->was_full;

	if (ch->direct->over)
		return;
	snprintf(c.reason, sizeof(c.reason), "%s", reason);
	let_go(ch);
	report(ch, &c);
	channel_discard_input(ch);
	channel_discard_output(ch);
	ch->reading = false;
	ch->ended = true;
	if (was_full)
		ch->on->drained(ch);
	if (channel_is_open(ch))
		ch->on->ended(ch);
}

/*
 * The end comes in the next turn, so that a caller who is writing is not
 * disturbed.
 */
static void
end_soon(struct channel *ch)
{
	event_active(&ch->in_event, EV_READ, 0);
}

void
direct_lose(struct channel *ch)
{
	ch->direct->lost = ch->direct->was_full = true;
	channel_discard_output(ch);
	end_soon(ch);
}

/* Messages that the client sent before are still taken. */
static void
tell_lost(struct channel *ch)
{
	if (!ch->direct->was_full)
		return;
	ch->direct->was_full = false;
	channel_review_reading(ch);
	ch->on->drained(ch);
}

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

/* Takes frames from p, as many as may be taken now. Returns the bytes taken. */
static size_t
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

/* --- events ------------------------------------------------------------- */

static void
channel_cb(evutil_socket_t fd, short what, void *arg)
{
	struct channel *ch = arg;
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		ch->on->broken(ch, -EBADMSG);
		return;
	}
	event_del(&ch->direct->channel_event);
	ch->direct->reclaimed = true;
	channel_review_reading(ch);
	loop_add_ms(&ch->direct->timer, RECLAIM_MS);
	channel_flush(ch);
	if (channel_drained(ch))
		end_soon(ch);
}

static struct liveness_now
moment(const struct channel *ch)
{
	return (struct liveness_now){ .ms = now_ms(),
		.fd = ch->in_fd,
		.reading = ch->reading,
		.interval_ms = ch->direct->terms->ping_interval_ms,
		.deadline_ms = ch->direct->terms->pong_deadline_ms };
}

/*
 * Sends a ping that asks this question, unless the channel is congested; what
 * waits then asks it. Returns false if nothing does.
 */
static bool
ask(struct channel *ch, struct question *q)
{
	struct liveness_now now = moment(ch);
	bool pings = !channel_congested(ch);

	if (!liveness_ask(q, &now, pings, ch->want_write))
		return false;
	if (pings)
		put_control(ch, WEBSOCKET_PING, "", 0);
	return true;
}

static void
plan_look(struct channel *ch)
{
	struct liveness_now now = moment(ch);

	loop_add_ms(&ch->direct->timer,
	    (uint64_t)(liveness_next(&ch->direct->life, &now) - now.ms));
}

static void
client_is_silent(struct channel *ch, enum liveness_result why)
{
	char text[CONTROL_CLOSE_REASON_MAX];

	snprintf(text, sizeof(text), "no pong within %u ms",
	    ch->direct->terms->pong_deadline_ms);
	if (why == LIVENESS_OVER)
		direct_end(ch, 0, text);
	else
		direct_end(ch, WEBSOCKET_CLOSE_GOING_AWAY, PROBE_SILENT);
}

static void
look(struct channel *ch)
{
	struct direct *d = ch->direct;
	struct liveness_now now = moment(ch);
	enum liveness_result r = liveness_look(&d->life, &now);

	if (r == LIVENESS_OVER || r == LIVENESS_PROBED_OVER) {
		client_is_silent(ch, r);
		return;
	}
	if (r == LIVENESS_PING)
		ask(ch, &d->life.ping);
	if (r == LIVENESS_PING && (d->received > 0 || d->sent > 0))
		report_event(ch, CLIENT_COUNTED);
	plan_look(ch);
	if (r == LIVENESS_PROBED && ch->on->alive != NULL)
		ch->on->alive(ch, d->probe);
}

void
direct_probe(struct channel *ch, uint32_t number)
{
	struct direct *d = ch->direct;

	d->probe = number;
	d->life.probe.asked_ms = 0;
	if (d->over || d->reclaimed)
		return; /* its end is the answer */
	if (ask(ch, &d->life.probe))
		plan_look(ch);
	else if (ch->on->alive != NULL)
		ch->on->alive(ch, number);
}

static void
timer_cb(evutil_socket_t fd, short what, void *arg)
{
	struct channel *ch = arg;
	struct direct *d = ch->direct;

	if (d->reclaimed)
		direct_end(ch, 0, "");
	else
		look(ch);
}

/* --- reading and writing ------------------------------------------------ */

static void
take(struct channel *ch, uint8_t *p, size_t n)
{
	size_t at = direct_take(ch, p, n);

	if (at < n && ch->direct != NULL && !ch->direct->over)
		buf_put(&ch->in, p + at, n - at);
}

static void
take_kept(struct channel *ch)
{
	struct buf kept = ch->in;

	buf_init(&ch->in, kept.limit);
	take(ch, kept.data, kept.len);
	buf_clear(&kept);
}

ssize_t
direct_read(struct channel *ch)
{
	struct direct *d = ch->direct;
	ssize_t n;

	if (d->reclaimed && channel_drained(ch)) {
		direct_end(ch, 0, "");
		return -EAGAIN;
	}
	tell_lost(ch);
	if (channel_is_behind(ch))
		return -EAGAIN;
	if (ch->in.len > 0) {
		take_kept(ch);
		return -EAGAIN;
	}
	n = recv(
	    ch->in_fd, channel_scratch, CHANNEL_SCRATCH_BYTES, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	liveness_heard(&d->life);
	if (n <= 0) {
		direct_end(ch, 0, "");
		return -EAGAIN;
	}
	d->received += (size_t)n;
	if (d->life.probe.asked_ms != 0)
		look(ch); /* a probe is answered at once */
	take(ch, channel_scratch, (size_t)n);
	return -EAGAIN;
}

void
direct_written(struct channel *ch, const uint8_t *p, size_t n)
{
	struct direct *d = ch->direct;

	d->sent += n;
	while (n > 0) {
		size_t step = n;

		if (d->left == 0)
			d->left = direct_frame_bytes(p);
		if (step > d->left)
			step = (size_t)d->left;
		d->left -= step;
		p += step;
		n -= step;
	}
}

void
direct_writing(struct channel *ch)
{
	if (ch->direct->answered)
		return;
	ch->direct->answered = true;
	report_event(ch, CLIENT_ANSWERED);
}

void
direct_drained(struct channel *ch)
{
	if (ch->direct->reclaimed)
		end_soon(ch);
	if (!ch->direct->want_pong)
		return;
	direct_pong(ch);
	channel_flush(ch);
}

/* --- the beginning ------------------------------------------------------ */

static bool
is_connection(int fd)
{
	int type = 0, listens = 1;
	socklen_t n = sizeof(int), m = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 &&
	       type == SOCK_STREAM &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &m) == 0 &&
	       listens == 0;
}

static void
watch(struct channel *ch, int fd)
{
	struct direct *d = ch->direct;
	struct event_base *base = event_get_base(&ch->in_event);

	d->channel_fd = ch->in_fd;
	channel_watch(ch, fd);
	event_assign(&d->channel_event, base, d->channel_fd,
	    EV_READ | EV_PERSIST, channel_cb, ch);
	event_assign(&d->timer, base, -1, 0, timer_cb, ch);
	loop_add(&d->channel_event, NULL);
	liveness_begin(
	    &d->life, ch->proxied, now_ms(), d->terms->ping_interval_ms);
	plan_look(ch);
}

int
direct_begin(struct channel *ch, char *text, size_t len)
{
	const struct control_session_config *terms = ch->hand_over;
	int fd = ch->fds[0];
	size_t first;

	ch->hand_over = NULL;
	if (!is_connection(fd) || len <= FRAME_HEADER_BYTES)
		return -EBADMSG;
	first = frame_get_length((uint8_t *)text);
	text += FRAME_HEADER_BYTES;
	len -= FRAME_HEADER_BYTES;
	if (first == 0 || first > len)
		return -EBADMSG;
	ch->nfds = 0;
	ch->direct = xcalloc(1, sizeof(*ch->direct));
	ch->direct->terms = terms;
	websocket_parser_init(&ch->direct->parser, ch->max_message);
	watch(ch, fd);
	ch->on->message(ch, text, first);
	if (ch->direct != NULL && first < len)
		take(ch, (uint8_t *)text + first, len - first);
	return 0;
}
