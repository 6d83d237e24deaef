/* SPDX-License-Identifier: ISC */
/*
 * Traffic with the helpers: each has a queue of requests, and its answers go
 * directly into the session's channel.
 */
#include "helper_parts.h"

#include <errno.h>
#include <event2/event.h>
#include <sys/socket.h>
#include <unistd.h>

#include "heap.h"
#include "jsonrpc.h"
#include "loop.h"

/* With more queued for a helper, the client is paused. */
#define QUEUE_PAUSE_BYTES (1u << 20)

#define READ_BYTES (128u << 10)
static heap_aligned uint8_t scratch[READ_BYTES];

void
helper_resume_all(struct session *s)
{
	struct helper *h;

	TAILQ_FOREACH (h, &s->helpers, link)
		loop_watch(&h->in_event, &h->reading, true);
}

/* Returns false if the tag belongs to no open request. */
static bool
take_tag(struct helper *h, uint32_t tag)
{
	uint32_t number = tag & FRAME_NUMBER;
	struct forwarded *f;

	if (number == 0) {
		if (tag & FRAME_STREAM && h->streams-- == 0)
			return false;
		return true;
	}
	STAILQ_FOREACH (f, &h->waiting, link)
		if (f->number == number)
			break;
	if (f == NULL)
		return false;
	h->note = f->note;
	h->failed = tag & FRAME_FAILED;
	h->answering = h->kind == HELPER_FILES;
	helper_forwarded_free(h, f);
	if (tag & FRAME_STREAM)
		h->streams++;
	return true;
}

/* Begins to relay; the header of the next frame is complete. */
static bool
begin_relay(struct helper *h)
{
	struct session *s = h->session;

	h->header_len = 0;
	if (frame_get_length(h->header) == 0 ||
	    !take_tag(h, frame_get_length(h->header + FRAME_HEADER_BYTES)))
		return false;
	channel_relay_begin(&s->client.channel, frame_get_length(h->header));
	s->relaying = h;
	return true;
}

/* The frame is complete; others may get their turn. */
static void
end_relay(struct helper *h)
{
	h->session->relaying = NULL;
	if (!h->answering)
		return;
	file_router_answered(h->session, h, &h->note, h->failed);
	h->answering = false;
}

/*
 * Passes parts of answers into the session's channel. Returns false if the data
 * is not a valid frame.
 */
static bool
relay(struct helper *h, const uint8_t *p, size_t n)
{
	struct session *s = h->session;

	while (n > 0) {
		size_t piece = s->client.channel.relay_left;

		if (s->relaying != h) {
			h->header[h->header_len++] = *p++;
			n--;
			if (h->header_len == FRAME_TAGGED_BYTES &&
			    !begin_relay(h))
				return false;
			continue;
		}
		if (piece > n)
			piece = n;
		channel_relay(&s->client.channel, p, piece);
		p += piece;
		n -= piece;
		if (s->client.channel.relay_left == 0)
			end_relay(h);
	}
	return true;
}

void
helper_in_cb(evutil_socket_t fd, short what, void *arg)
{
	struct helper *h = arg;
	struct session *s = h->session;
	bool was_relaying = s->relaying == h;
	ssize_t n;

	/*
	 * Waits while the client does not read, or while another helper's frame
	 * is being relayed.
	 */
	if (s->client.channel.want_write ||
	    (s->relaying != NULL && !was_relaying)) {
		loop_watch(&h->in_event, &h->reading, false);
		return;
	}
	heap_scratch(scratch, sizeof(scratch));
	n = read(fd, scratch, sizeof(scratch));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || !relay(h, scratch, (size_t)n)) {
		helper_failed(h);
		return;
	}
	/* Others were held back during the frame. */
	if (was_relaying && s->relaying == NULL)
		s->client.channel.on->drained(&s->client.channel);
}

/* Returns the next queued request that has a spool. */
static struct forwarded *
next_spool(struct helper *h)
{
	struct forwarded *f;

	if (h->spools == 0)
		return NULL;
	STAILQ_FOREACH (f, &h->waiting, link)
		if (f->spool != NULL && !f->sent)
			break;
	return f;
}

/*
 * Like write(2): writes the queue up to the next request with a spool, or the
 * header of that request's frame with the spool's descriptor.
 */
static ssize_t
write_queue(struct helper *h, struct forwarded *f)
{
	const uint8_t *at = h->queue.data + h->queue_at;
	ssize_t n;

	if (f == NULL || f->at > h->queue_at)
		return write(h->fd, at,
		    (f != NULL ? f->at : h->queue.len) - h->queue_at);
	n = spool_send(f->spool, h->fd, at, FRAME_HEADER_BYTES);
	if (n > 0) {
		f->sent = true;
		h->spools--;
	}
	return n;
}

static void
flush(struct helper *h)
{
	struct forwarded *f;
	size_t left;
	ssize_t n;

	do {
		f = next_spool(h);
		n = write_queue(h, f);
		h->queue_at += n > 0 ? (size_t)n : 0;
	} while (n > 0 && f != NULL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		/*
		 * The end of file that follows handles the rest, even if the
		 * helper still lives.
		 */
		shutdown(h->fd, SHUT_RDWR);
		return;
	}
	left = h->queue.len - h->queue_at;
	if (left == 0) {
		buf_clear(&h->queue);
		h->queue_at = 0;
	} else {
		loop_add(&h->out_event, NULL);
	}
	helper_pause_client(h->session);
}

void
helper_out_cb(evutil_socket_t fd, short what, void *arg)
{
	flush(arg);
}

void
helper_pause_client(struct session *s)
{
	bool behind = s->held_bytes > QUEUE_PAUSE_BYTES;
	struct helper *h;

	TAILQ_FOREACH (h, &s->helpers, link)
		if (h->queue.len - h->queue_at > QUEUE_PAUSE_BYTES)
			behind = true;
	channel_pause(&s->client.channel, behind);
}

/*
 * Drops what was sent. A client that never stops sending keeps the queue from
 * getting empty, and without this every byte of an upload would be kept. At
 * least half of the queue is dropped at a time, so each byte is moved once at
 * most.
 */
static void
drop_sent(struct helper *h)
{
	struct forwarded *f;

	if (h->queue_at < h->queue.len / 2)
		return;
	STAILQ_FOREACH (f, &h->waiting, link)
		if (f->spool != NULL && !f->sent)
			f->at -= h->queue_at;
	buf_consume(&h->queue, h->queue_at);
	h->queue_at = 0;
}

/* The frame of a large request is moved into the queue without a copy. */
static void
enqueue(struct helper *h, const char *text, size_t len, bool spooled)
{
	uint8_t header[FRAME_HEADER_BYTES];

	if (h->queue.len == 0 &&
	    channel_take_frame(&h->session->client.channel, text, &h->queue)) {
		h->queue.limit = QUEUE_MAX_BYTES;
		return;
	}
	frame_put_length(header, (uint32_t)len | (spooled ? FRAME_SPOOLED : 0));
	buf_put(&h->queue, header, sizeof(header));
	buf_put(&h->queue, text, len);
}

static bool
has_room(const struct helper *h, size_t len)
{
	return len < QUEUE_MAX_BYTES - FRAME_HEADER_BYTES - h->queue.len;
}

/* Refuses one request if too much is waiting; the session goes on. */
static int
refuse(struct helper *h, struct request *r, const struct file_note *note)
{
	reply_error(r->channel, &r->id, RPC_INTERNAL,
	    "more than %u bytes of requests wait for %s", QUEUE_MAX_BYTES,
	    helper_name(h));
	if (note != NULL && h->kind == HELPER_FILES)
		file_router_answered(r->session, h, note, true);
	return 0;
}

int
helper_forward(struct helper *h, struct request *r,
    const struct file_note *note, const char *text, size_t len)
{
	struct session *s = r->session;
	struct forwarded *f;

	drop_sent(h);
	if (!has_room(h, len))
		return refuse(h, r, note);
	f = xcalloc(1, sizeof(*f));
	f->at = h->queue.len;
	f->spool = r->spool;
	r->spool = NULL;
	h->spools += f->spool != NULL;
	enqueue(h, text, len, f->spool != NULL);
	f->number = h->number = frame_next_number(h->number);
	f->id = r->id;
	if (note != NULL)
		f->note = *note;
	r->id = (struct rpc_id){ 0 };
	STAILQ_INSERT_TAIL(&h->waiting, f, link);
	s->client.waiting++;
	helper_look(h);
	/*
	 * A helper that stopped reading causes no event, so flush() is not
	 * called.
	 */
	if (!event_pending(&h->out_event, EV_WRITE, NULL))
		flush(h);
	else
		helper_pause_client(s);
	return RPC_PENDING;
}
