/* SPDX-License-Identifier: ISC */
/*
 * A connection of the load client, once it is open: frames and events.
 */
#include "peer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include "websocket.h"

#define READ_BYTES     (256u << 10)
#define FRAGMENT_BYTES (1u << 20) /* servers take frames up to 16 MiB */

static void
watch(struct peer *p)
{
	struct epoll_event e = {
		.events = (p->paused ? 0u : (uint32_t)EPOLLIN) |
			  (p->waits ? (uint32_t)EPOLLOUT : 0u),
		.data.ptr = p,
	};

	if (epoll_ctl(p->load->epoll, EPOLL_CTL_MOD, p->stream.in, &e) < 0)
		log_fatal_errno(-errno, "epoll_ctl");
}

static void
flush(struct peer *p)
{
	size_t at = 0;

	while (at < p->out.len) {
		ssize_t n =
		    stream_write(&p->stream, p->out.data + at, p->out.len - at);

		if (n == -EAGAIN)
			break;
		if (n < 0)
			log_fatal_errno((int)n, "write to the server");
		at += (size_t)n;
	}
	buf_consume(&p->out, at);
	if (p->waits != (p->out.len > 0)) {
		p->waits = p->out.len > 0;
		watch(p);
	}
}

static void
put_frame(struct peer *p, enum websocket_opcode opcode, bool last,
    const uint8_t *data, size_t len)
{
	uint8_t header[WEBSOCKET_MASKED_MAX];
	size_t n = websocket_put_masked_header(header, opcode, len, p->mask);

	if (!last)
		header[0] &= 0x7f; /* FIN */
	buf_put(&p->out, header, n);
	buf_put(&p->out, data, len);
	if (p->out.failed)
		log_fatal("more than %zu bytes wait to be sent", p->out.limit);
	websocket_mask(p->out.data + p->out.len - len, len, p->mask, 0);
}

void
peer_begin(
    struct peer *p, struct json_writer *w, const char *method, int64_t id)
{
	p->text.len = 0;
	json_writer_init(w, &p->text);
	json_begin(w, '{');
	json_key(w, "id");
	json_i64(w, id);
	json_key(w, "method");
	json_cstring(w, method);
	json_key_begin(w, "params", '{');
}

void
peer_send(struct peer *p, struct json_writer *w)
{
	size_t at = 0;

	json_end(w, '}');
	json_end(w, '}');
	do {
		size_t left = p->text.len - at;
		size_t n = left < FRAGMENT_BYTES ? left : FRAGMENT_BYTES;

		put_frame(p, at == 0 ? WEBSOCKET_TEXT : WEBSOCKET_CONTINUATION,
		    n == left, p->text.data + at, n);
		at += n;
	} while (at < p->text.len);
	flush(p);
}

static void
take_message(struct peer *p, const uint8_t *text, size_t len)
{
	struct message m;

	if (message_scan(&m, (const char *)text, len) < 0)
		log_fatal("the server sent no JSON object: %.*s",
		    (int)(len < 200 ? len : 200), (const char *)text);
	if (m.is_error)
		log_fatal("the server answered with an error: %.*s",
		    (int)m.error.len, m.error.ptr);
	p->load->on_message(p->load, p, &m);
}

static void
take_frame(struct peer *p, uint8_t first, const uint8_t *data, size_t len)
{
	bool last = first & 0x80;

	switch (first & 0x0f) {
	case WEBSOCKET_PING:
		put_frame(p, WEBSOCKET_PONG, true, data, len);
		flush(p);
		return;
	case WEBSOCKET_PONG:
		return;
	case WEBSOCKET_CLOSE:
		log_fatal("the server closed the connection: %.*s",
		    len > 2 ? (int)len - 2 : 0, (const char *)data + 2);
	default:
		break;
	}
	if (last && p->whole.len == 0) {
		take_message(p, data, len);
		return;
	}
	buf_put(&p->whole, data, len);
	if (p->whole.failed)
		log_fatal("a message has more than %zu bytes", p->whole.limit);
	if (last) {
		take_message(p, p->whole.data, p->whole.len);
		p->whole.len = 0;
	}
}

/* The header of a server's frame: its length, or 0 when it is not all there. */
static size_t
frame_header(const uint8_t *p, size_t len, uint64_t *payload)
{
	size_t more = len < 2		    ? 0
		      : (p[1] & 0x7f) < 126 ? 0
		      : p[1] == 126	    ? 2
					    : 8;

	if (len < 2 + more)
		return 0;
	*payload = more == 0 ? p[1] & 0x7f : 0;
	for (size_t i = 0; i < more; i++)
		*payload = *payload << 8 | p[2 + i];
	return 2 + more;
}

static void
parse(struct peer *p)
{
	uint64_t payload;
	size_t header;

	for (;;) {
		size_t left = p->in.len - p->in_at;
		const uint8_t *at = p->in.data + p->in_at;

		header = frame_header(at, left, &payload);
		if (header == 0 || left < header || left - header < payload)
			break;
		p->in_at += header + payload;
		take_frame(p, at[0], at + header, payload);
	}
	buf_consume(&p->in, p->in_at);
	p->in_at = 0;
}

static void
receive(struct peer *p)
{
	static const int on = 1;
	ssize_t n;

	do {
		uint8_t *room = buf_reserve(&p->in, READ_BYTES);

		if (room == NULL)
			log_fatal(
			    "a frame has more than %zu bytes", p->in.limit);
		n = stream_read(&p->stream, room, READ_BYTES);
		if (n == -EAGAIN)
			return;
		if (n < 0)
			log_fatal_errno((int)n, "read from the server");
		if (n == 0)
			log_fatal("the server dropped the connection");
		buf_commit(&p->in, (size_t)n);
		p->received += (uint64_t)n;
		if (p->load->quickack)
			setsockopt(p->stream.in, IPPROTO_TCP, TCP_QUICKACK, &on,
			    sizeof(on));
		parse(p);
	} while (stream_has_input(&p->stream));
	/* What is idle keeps no memory, thousands of them. */
	if (p->in.len == 0 && p->load->npeers > 64)
		buf_clear(&p->in);
}

void
peer_serve(struct peer *p, uint32_t events)
{
	if (events & EPOLLOUT)
		flush(p);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		receive(p);
}

void
peer_pause(struct peer *p, bool paused)
{
	p->paused = paused;
	watch(p);
}
