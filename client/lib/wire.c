/* SPDX-License-Identifier: ISC */
/*
 * Converts between bytes and messages: WebSocket frames, or the lines of a
 * command.
 */
#include <sys/random.h>

#include "base.h"
#include "client.h"

#define READ_ROUNDS 16 /* reads before the caller gets a turn */

void
wire_reset(struct execd_client *c)
{
	websocket_parser_init_client(&c->parser, CLIENT_RECEIVE_MAX);
	buf_clear(&c->in);
	buf_clear(&c->out);
	c->out_at = 0;
}

static bool
is_lines(const struct execd_client *c)
{
	return c->endpoint.kind == ENDPOINT_STDIO;
}

/* Tells whether the connection is still open. A callback may have ended it
 * while its data was being parsed. */
static bool
is_alive(const struct execd_client *c)
{
	return c->link >= LINK_INITIALIZE;
}

bool
wire_pending(const struct execd_client *c)
{
	return c->out_at < c->out.len;
}

/* --- Sending ------------------------------------------------------------ */

static void
put_frame(struct execd_client *c, enum websocket_opcode opcode,
    const void *data, size_t len)
{
	uint8_t header[WEBSOCKET_MASKED_MAX], mask[4];
	uint8_t *at;

	/* The mask protects only proxies (RFC 6455 section 10.3), so zeros will
	 * do while the kernel has no entropy. */
	if (getrandom(mask, sizeof(mask), GRND_NONBLOCK) != sizeof(mask))
		memset(mask, 0, sizeof(mask));
	buf_put(&c->out, header,
	    websocket_put_masked_header(header, opcode, len, mask));
	at = len > 0 ? buf_reserve(&c->out, len) : NULL;
	if (at == NULL)
		return;
	memcpy(at, data, len);
	websocket_mask(at, len, mask, 0);
	buf_commit(&c->out, len);
}

void
wire_send(struct execd_client *c, const char *text, size_t len)
{
	if (is_lines(c)) {
		buf_put(&c->out, text, len);
		buf_put(&c->out, "\n", 1);
	} else {
		put_frame(c, WEBSOCKET_TEXT, text, len);
	}
}

void
wire_control(struct execd_client *c, enum websocket_opcode opcode,
    const void *data, size_t len)
{
	if (!is_lines(c))
		put_frame(c, opcode, data, len);
}

int
wire_flush(struct execd_client *c)
{
	while (wire_pending(c)) {
		ssize_t n = stream_write(&c->stream, c->out.data + c->out_at,
		    c->out.len - c->out_at);

		if (n == -EAGAIN || n == 0)
			break;
		if (n < 0) {
			client_set_error(c, "%s: send: %s", c->options.url,
			    stream_strerror((int)n));
			return (int)n;
		}
		c->out_at += (size_t)n;
	}
	/* Moves the queue only when more than half of it was sent, to keep
	 * copying cheap. */
	if (c->out_at == c->out.len || c->out_at > c->out.len / 2) {
		buf_consume(&c->out, c->out_at);
		c->out_at = 0;
	}
	return 0;
}

/* --- Receiving ---------------------------------------------------------- */

/* How much of a message that makes no sense is shown. */
#define SHOWN_MAX 200

static int
refuse_message(struct execd_client *c, const char *detail)
{
	client_set_error(c, "%s: the server sent an invalid message: %s",
	    c->options.url, detail);
	return -EBADMSG;
}

static int
refuse_text(
    struct execd_client *c, const char *detail, const char *text, size_t len)
{
	char shown[512];

	snprintf(shown, sizeof(shown), "%s: %.*s%s", detail,
	    (int)(len < SHOWN_MAX ? len : SHOWN_MAX), text,
	    len > SHOWN_MAX ? "..." : "");
	return refuse_message(c, shown);
}

/* A program that has not begun with the protocol may be a shell or ssh(1) on
 * the way, which has a banner or asks for a password. */
static bool
has_not_begun(const struct execd_client *c)
{
	return is_lines(c) && c->link == LINK_INITIALIZE;
}

void
wire_add_said(struct execd_client *c)
{
	_cleanup_free_ char *error = c->error ? xstrdup(c->error) : NULL;
	size_t n = c->in.len;

	if (!has_not_begun(c) || n == 0 || error == NULL)
		return;
	client_set_error(c, "%s; the program said: %.*s%s", error,
	    (int)(n < SHOWN_MAX ? n : SHOWN_MAX), c->in.data,
	    n > SHOWN_MAX ? "..." : "");
}

/* A server whose client answers nothing learns that there is nobody to ask, and
 * takes it for a no (execd-protocol(7), network/policyRequest). */
static void
refuse_request(struct execd_client *c, const struct rpc_message *m)
{
	static const char why[] = "this client answers no requests";
	struct json_text t;
	struct rpc_id id;

	rpc_id_copy(&id, m->id);
	json_text_init(&t, id.len + 256);
	rpc_write_error(&t.w, &id, RPC_UNKNOWN_METHOD, why, sizeof(why) - 1);
	wire_send(c, (const char *)t.buf.data, t.buf.len);
	buf_clear(&t.buf);
	rpc_id_clear(&id);
}

static void
take_request(struct execd_client *c, const struct rpc_message *m)
{
	_cleanup_free_ char *method = xstrndup(m->method.ptr, m->method.len);
	uint64_t id;

	if (c->options.on_request != NULL && json_to_u64(m->id, &id) == 0)
		c->options.on_request(c->options.arg, id, method, m->params);
	else
		refuse_request(c, m);
}

static void
take_notification(struct execd_client *c, const struct rpc_message *m)
{
	_cleanup_free_ char *method = xstrndup(m->method.ptr, m->method.len);
	const char *by;
	size_t n = 0;

	if (c->taken_by == NULL && strcmp(method, "session/takenOver") == 0) {
		by = execd_json_string(json_get(m->params, "by"), &n);
		c->taken_by = xstrndup(by ? by : "", n);
	}
	if (c->options.on_notification != NULL)
		c->options.on_notification(c->options.arg, method, m->params);
}

static int
take_message(struct execd_client *c, const char *text, size_t len)
{
	struct rpc_message m;
	int err = rpc_parse(&m, text, len);

	if (err < 0 && has_not_begun(c)) {
		client_set_error(
		    c, "%s: this is not the protocol", c->options.url);
		wire_add_said(c);
		err = -EBADMSG;
	} else if (err < 0)
		err = refuse_text(c, m.doc.error, text, len);
	else if (m.kind == RPC_KIND_REQUEST)
		take_request(c, &m);
	else if (m.kind == RPC_KIND_RESPONSE)
		calls_answer(c, &m, text, len);
	else if (!process_notification(c, &m))
		take_notification(c, &m);
	rpc_message_clear(&m);
	return err;
}

static int
take_data(struct execd_client *c, const struct websocket_item *item)
{
	int err = 0;

	/* A message in one piece is parsed in place. */
	if (item->first && item->last)
		return take_message(c, (const char *)item->payload, item->len);
	buf_put(&c->in, item->payload, item->len);
	if (c->in.failed)
		return refuse_message(c, "it is longer than 64 MiB");
	if (item->last) {
		err = take_message(c, (const char *)c->in.data, c->in.len);
		c->in.len = 0;
	}
	return err;
}

/* The server says so when it ends the session itself, and then nothing is left
 * to resume (execd-protocol(7)). */
static bool
ends_session(const struct websocket_item *item)
{
	static const char words[] = "session ended: ";
	const size_t n = sizeof(words) - 1;

	return item->close_code == WEBSOCKET_CLOSE_INTERNAL &&
	       item->len >= 2 + n && memcmp(item->payload + 2, words, n) == 0;
}

/* A token that has expired may resume its session. To whatever else comes the
 * server says what it says with status 401. */
static bool
says_expired(const struct websocket_item *item)
{
	static const char words[] = "expired websocket jwt";
	const size_t n = sizeof(words) - 1;

	return item->close_code == WEBSOCKET_CLOSE_POLICY &&
	       item->len == 2 + n && memcmp(item->payload + 2, words, n) == 0;
}

static int
take_item(struct execd_client *c, const struct websocket_item *item)
{
	switch (item->event) {
	case WEBSOCKET_EV_DATA:
		return take_data(c, item);
	case WEBSOCKET_EV_PING:
		wire_control(c, WEBSOCKET_PONG, item->payload, item->len);
		return 0;
	case WEBSOCKET_EV_CLOSE:
		c->session_over = ends_session(item);
		c->expired = says_expired(item);
		client_set_error(c,
		    "%s: the server closed the connection with code %u%s%.*s",
		    c->options.url, item->close_code, item->len > 2 ? ": " : "",
		    (int)(item->len > 2 ? item->len - 2 : 0),
		    item->len > 2 ? (const char *)item->payload + 2 : "");
		return -ECONNRESET;
	case WEBSOCKET_EV_ERROR:
		return refuse_message(c, item->error);
	default:
		return 0;
	}
}

/* Parses frames until a callback ends the connection. */
static int
take_frames(struct execd_client *c, uint8_t *data, size_t len)
{
	struct websocket_item item;
	int err = 0;

	while (len > 0 && err == 0 && is_alive(c)) {
		size_t n = websocket_parse(&c->parser, data, len, &item);

		err = take_item(c, &item);
		data += n;
		len -= n;
	}
	return err;
}

static int
take_lines(struct execd_client *c, const uint8_t *data, size_t len)
{
	int err = 0;

	while (len > 0 && err == 0 && is_alive(c)) {
		const uint8_t *end = memchr(data, '\n', len);
		size_t n = end ? (size_t)(end - data) : len;

		buf_put(&c->in, data, n);
		if (c->in.failed)
			return refuse_message(c, "a line of more than 64 MiB");
		if (end == NULL)
			break;
		if (c->in.len > 0)
			err = take_message(
			    c, (const char *)c->in.data, c->in.len);
		c->in.len = 0;
		data += n + 1;
		len -= n + 1;
	}
	return err;
}

static int
take_input(struct execd_client *c, uint8_t *data, size_t len)
{
	if (is_lines(c))
		return take_lines(c, data, len);
	return take_frames(c, data, len);
}

int
wire_read(struct execd_client *c)
{
	for (int i = 0; i < READ_ROUNDS && is_alive(c) && !c->paused; i++) {
		ssize_t n =
		    stream_read(&c->stream, c->bytes, CLIENT_READ_BYTES);
		int err;

		if (n == -EAGAIN)
			return 0;
		if (n <= 0) {
			client_set_error(c, "%s: %s", c->options.url,
			    n < 0	  ? stream_strerror((int)n)
			    : is_lines(c) ? "the command ended"
					  : "the connection was closed");
			wire_add_said(c);
			return n == 0 ? -ECONNRESET : (int)n;
		}
		link_heard(c);
		err = take_input(c, c->bytes, (size_t)n);
		if (err < 0)
			return err;
	}
	return 0;
}
