/* SPDX-License-Identifier: ISC */
/*
 * A connection of the load client, once it is open: frames and events.
 */
#include "peer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

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

/* --- What comes --------------------------------------------------------- */

const struct json_value *
message_member(const struct rpc_message *m, const char *name)
{
	return json_get(
	    m->params ? m->params : json_get(m->doc.root, "result"), name);
}

int64_t
message_id(const struct rpc_message *m)
{
	int64_t id;

	return m->id != NULL && json_to_i64(m->id, &id) == 0 ? id : -1;
}

bool
message_is(const struct rpc_message *m, const char *method)
{
	return slice_equal(m->method, slice_of(method));
}

void
message_check_exit(const struct rpc_message *m, const char *who)
{
	int64_t code;

	if (message_is(m, "process/exited") &&
	    (json_to_i64(message_member(m, "exitCode"), &code) < 0 ||
		code != 0))
		log_fatal("%s ended with %lld, not 0", who, (long long)code);
}

size_t
message_bytes(const struct rpc_message *m, const char *name)
{
	const struct json_value *v = message_member(m, name);
	size_t n = v != NULL ? v->text.len / 4 * 3 : 0;

	for (size_t i = 1; v != NULL && i <= 2 && i <= v->text.len; i++)
		n -= v->text.ptr[v->text.len - i] == '=';
	return n;
}

static void
take_message(struct peer *p, const uint8_t *text, size_t len)
{
	struct rpc_message m;
	const struct json_value *error;

	if (p->whole.failed || rpc_parse(&m, (const char *)text, len) < 0)
		log_fatal("the server sent no message of JSON-RPC: %.*s",
		    (int)(len < 200 ? len : 200), (const char *)text);
	error = json_get(json_get(m.doc.root, "error"), "message");
	if (error != NULL)
		log_fatal("the server answered with an error: %.*s",
		    (int)error->text.len, error->text.ptr);
	p->load->on_message(p->load, p, &m);
	rpc_message_clear(&m);
}

static void
take_data(struct peer *p, const struct websocket_item *item)
{
	if (item->first && item->last) {
		take_message(p, item->payload, item->len);
		return;
	}
	buf_put(&p->whole, item->payload, item->len);
	if (!item->last)
		return;
	take_message(p, p->whole.data, p->whole.len);
	p->whole.len = 0;
}

static void
take_item(struct peer *p, const struct websocket_item *item)
{
	switch (item->event) {
	case WEBSOCKET_EV_DATA:
		take_data(p, item);
		return;
	case WEBSOCKET_EV_PING:
		put_frame(p, WEBSOCKET_PONG, true, item->payload, item->len);
		flush(p);
		return;
	case WEBSOCKET_EV_CLOSE:
		log_fatal("the server closed the connection: %.*s",
		    item->len > 2 ? (int)item->len - 2 : 0,
		    (const char *)item->payload + 2);
	case WEBSOCKET_EV_ERROR:
		log_fatal("the server sent no WebSocket: %s", item->error);
	default:
		return;
	}
}

static void
receive(struct peer *p)
{
	static uint8_t data[READ_BYTES];
	static const int on = 1;
	struct websocket_item item;

	do {
		ssize_t n = stream_read(&p->stream, data, sizeof(data));

		if (n == -EAGAIN)
			return;
		if (n < 0)
			log_fatal_errno((int)n, "read from the server");
		if (n == 0)
			log_fatal("the server dropped the connection");
		p->received += (uint64_t)n;
		if (p->load->quickack)
			setsockopt(p->stream.in, IPPROTO_TCP, TCP_QUICKACK, &on,
			    sizeof(on));
		for (size_t at = 0; at < (size_t)n;) {
			at += websocket_parse(
			    &p->parser, data + at, (size_t)n - at, &item);
			take_item(p, &item);
		}
	} while (stream_has_input(&p->stream));
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
