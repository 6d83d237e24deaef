/* SPDX-License-Identifier: ISC */
/*
 * Each direction is a pipe of its own. Before a pipe starts, what the proxy
 * needs to know of its bytes is read here: of a tunnel the first record, of
 * HTTP the head of the answer.
 */
#include <event2/event.h>

#include "base.h"
#include "loop.h"
#include "proxy_client_parts.h"
#include "tls_hello.h"

/* Counts bytes that pass. Returns false if the command has used all; c is gone
 * then. */
static bool
moved(void *arg, size_t n)
{
	struct proxy_client *c = arg;
	struct proxy_list *l = c->list;

	l->bytes += n;
	if (l->most_bytes == 0 || l->bytes <= l->most_bytes)
		return true;
	client_cut(c, NETPROXY_BY_LIMIT, NETPROXY_TOO_MUCH);
	return false;
}

static void start_to_host(struct proxy_client *c, struct buf *first);

/* What was held back goes on: the server has agreed to the other protocol. */
static void
go_on_upgraded(struct proxy_client *c)
{
	proxy_pipe_stop(&c->to_host);
	c->to_host = (struct proxy_pipe){ 0 };
	if (moved(c, c->in.len))
		start_to_host(c, &c->in);
}

/*
 * The command has ended, or what was known of its request is passed on. Servers
 * take an end of the bytes for a client that has left, so they see it when it
 * comes. What follows a request for another protocol waits in the socket.
 * Returns true if the command has ended.
 */
static bool
end_request(struct proxy_client *c)
{
	bool ended = !c->to_host.limited || c->to_host.left > 0;

	if (ended)
		shutdown(c->up, SHUT_WR);
	else if (c->upgraded)
		go_on_upgraded(c);
	else if (!c->upgrade)
		loop_add(&c->down_event, NULL);
	return ended;
}

/* The answer to a request is the last of its connection. */
static void
end_answer(struct proxy_client *c)
{
	if (c->to_command.limited && c->to_command.left > 0)
		client_reset(c); /* shorter than it said */
	else
		client_end(c);
}

/* Everything of one side was passed on. */
static void
done(void *arg, struct proxy_pipe *p)
{
	struct proxy_client *c = arg;

	if (p == &c->to_host && !end_request(c))
		return;
	if (p == &c->to_command && !client_is_tunnel(c) && !c->upgraded) {
		end_answer(c);
		return;
	}
	if (p == &c->to_command)
		shutdown(c->down, SHUT_WR);
	if (c->to_host.done && c->to_command.done)
		client_free(c);
}

static void
broken(void *arg, struct proxy_pipe *p, int err)
{
	if (err == -EMFILE || err == -ENFILE)
		log_warn(err, "a command's connection is cut");
	client_reset(arg);
}

static const struct proxy_pipe_events pipe_events = {
	.moved = moved,
	.done = done,
	.broken = broken,
};

/* Begins to relay what the command sends, after `first`. */
static void
start_to_host(struct proxy_client *c, struct buf *first)
{
	proxy_pipe_start(
	    &c->to_host, proxy_base, c->down, c->up, first, &pipe_events, c);
}

static void
start_to_command(struct proxy_client *c, struct buf *first)
{
	event_del(&c->out_event);
	proxy_pipe_start(
	    &c->to_command, proxy_base, c->up, c->down, first, &pipe_events, c);
}

void
relay_check_hello(struct proxy_client *c)
{
	size_t seen = c->in.len < TLS_HELLO_MAX ? c->in.len : TLS_HELLO_MAX;
	struct slice name = { "", 0 };
	struct host_name host;
	enum tls_hello hello = tls_hello_read(c->in.data, seen, &name);

	if ((c->in.len == 0 || hello == TLS_HELLO_PARTIAL) &&
	    seen < TLS_HELLO_MAX && !c->down_end) {
		loop_add(&c->down_event, NULL);
		return;
	}
	event_del(&c->down_event);
	if (hello == TLS_HELLO_NAME && !c->host.is_address &&
	    (host_name_parse(&host, name) < 0 ||
		strcmp(host.text, c->host.text) != 0))
		client_cut(c, NETPROXY_BY_LIST, NETPROXY_OTHER_NAME);
	else if (moved(c, c->in.len))
		start_to_host(c, &c->in);
}

/* The data of the last chunk that has begun goes by the pipe; what follows it
 * is read here again. */
void
relay_chunks(struct proxy_client *c)
{
	ssize_t n = proxy_chunks_read(&c->chunks, c->in.data, c->in.len);

	event_del(&c->down_event);
	if (n < 0) {
		client_reset(c);
		return;
	}
	buf_put(&c->head, c->in.data, (size_t)n);
	buf_consume(&c->in, c->in.len);
	if (!moved(c, c->head.len))
		return;
	proxy_pipe_stop(&c->to_host);
	c->to_host = (struct proxy_pipe){ .limited = true };
	if (c->chunks.state == CHUNK_DATA) {
		c->to_host.left = c->chunks.left;
		c->chunks.left = 0;
		c->chunks.state = CHUNK_DATA_CR;
	}
	c->chunked = c->chunks.state != CHUNK_DONE;
	start_to_host(c, &c->head);
}

/* Returns how many of the n bytes that came with a head belong to its body. */
static size_t
take_body(struct proxy_pipe *p, size_t n)
{
	if (!p->limited)
		return n;
	if (n > p->left)
		n = (size_t)p->left;
	p->left -= n;
	return n;
}

/* The answer's head is whole; `out` has it. */
static void
take_response(struct proxy_client *c, const struct proxy_response *r)
{
	struct proxy_pipe *p = &c->to_command;
	size_t n;

	event_del(&c->up_event);
	c->upgraded = r->status == 101;
	if (c->upgrade && !c->upgraded)
		buf_consume(&c->in, c->in.len);
	p->limited =
	    !c->upgraded && (r->has_length || r->no_body || c->no_body);
	p->left = r->no_body || c->no_body ? 0 : r->length;
	n = take_body(p, c->back.len);
	buf_put(&c->out, c->back.data, n);
	buf_clear(&c->back);
	if (c->out.failed)
		log_fatal("no room for the beginning of an answer");
	if (!moved(c, n))
		return;
	start_to_command(c, &c->out);
	if (c->upgraded && c->to_host.done)
		go_on_upgraded(c);
	else if (c->upgrade && !c->upgraded && c->to_host.done)
		loop_add(&c->down_event, NULL);
}

/* Heads before the answer's (1xx) go to the command at once. */
static void
read_response(struct proxy_client *c)
{
	struct proxy_response r = { 0 };
	ssize_t n;

	do {
		n = proxy_response_convert(
		    &c->out, &r, (const char *)c->back.data, c->back.len);
		if (n > 0)
			buf_consume(&c->back, (size_t)n);
	} while (n > 0 && r.status < 200 && r.status != 101 && !c->out.failed);
	if (r.status == 101 && !c->upgrade) {
		buf_consume(&c->out, c->out.len);
		n = -EBADMSG; /* nobody has asked for another protocol */
	}
	if (n < 0 || c->out.failed)
		client_fail(c, 502, SOCKS_FAILED,
		    "the server does not answer with HTTP/1.1");
	else if (n > 0)
		take_response(c, &r);
	else
		client_flush(c);
}

static void
up_cb(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_client *c = arg;
	int n = client_read(fd, &c->back);

	if (n == -EAGAIN)
		return;
	if (n > 0)
		read_response(c);
	else if (n == -ENOBUFS)
		client_fail(
		    c, 502, SOCKS_FAILED, "the head of the answer is too long");
	else
		client_fail(
		    c, 502, SOCKS_FAILED, "the server ended without an answer");
}
/* --- the beginning ------------------------------------------------------ */

static void
reply_connected(struct proxy_client *c)
{
	if (client_is_socks(c))
		client_reply_socks(c, SOCKS_OK);
	else if (!client_is_direct(c))
		buf_puts(
		    &c->out, "HTTP/1.1 200 Connection established\r\n\r\n");
}

static void
watch_host(struct proxy_client *c, event_callback_fn ready)
{
	if (event_initialized(&c->up_event))
		event_del(&c->up_event);
	event_assign(
	    &c->up_event, proxy_base, c->up, EV_READ | EV_PERSIST, ready, c);
	loop_add(&c->up_event, NULL);
}

/* The server has not been asked yet. */
static void
early_cb(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_client *c = arg;
	int n = client_read(fd, &c->back);

	if (n != -EAGAIN)
		client_fail(c, 502, SOCKS_FAILED,
		    n > 0 ? "the server speaks first, and port 80 is for HTTP"
			  : "the server ended without a request");
}

/* A second request could name a host that nobody has judged. So a tunnel to
 * port 80 carries one, as all that is plain HTTP. */
static void
begin_inside(struct proxy_client *c)
{
	reply_connected(c);
	c->state = READING_INSIDE;
	c->inside = true;
	watch_host(c, early_cb);
	if (client_flush(c))
		request_read_inside(c);
}

/* Both directions of a tunnel, though what the command says first is looked at
 * before. */
static void
begin_tunnel(struct proxy_client *c)
{
	reply_connected(c);
	start_to_command(c, &c->out);
	relay_check_hello(c);
}

void
relay_http(struct proxy_client *c)
{
	size_t n;

	watch_host(c, up_cb);
	if (c->chunked) {
		relay_chunks(c);
		return;
	}
	c->to_host.limited = true;
	c->to_host.left = c->length;
	n = take_body(&c->to_host, c->in.len);
	buf_put(&c->head, c->in.data, n);
	buf_consume(&c->in, c->upgrade ? n : c->in.len);
	if (moved(c, c->head.len))
		start_to_host(c, &c->head);
}

void
relay_begin(struct proxy_client *c)
{
	if (!client_is_tunnel(c))
		relay_http(c);
	else if (c->port == PROXY_HTTP_PORT)
		begin_inside(c);
	else
		begin_tunnel(c);
}
