/* SPDX-License-Identifier: ISC */
/*
 * The states of a connection follow each other: the head is read, its host
 * judged (and the client of execd asked), the host connected to, the bytes
 * relayed. Who is refused gets a reply and then the end. While bytes are
 * relayed each direction is a pipe of its own; before it starts, what it needs
 * to know of them is read here: of a tunnel the first record, of HTTP the
 * answer's head.
 */
#include "proxy_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "loop.h"
#include "netproxy_control.h"
#include "proxy_dial.h"
#include "proxy_http.h"
#include "proxy_pipe.h"
#include "proxy_reply.h"
#include "proxy_socks.h"
#include "tls_hello.h"

#define HEAD_SECONDS   30		    /* until the request is whole */
#define LINGER_SECONDS 5		    /* for a reply to arrive */
#define BUFFER_MAX     (4 * PROXY_HEAD_MAX) /* a head, and what came with it */

enum state { READING, ASKING, DIALING, RELAYING, ENDING };

struct proxy_client {
	LIST_ENTRY(proxy_client) link; /* list.clients */
	struct proxy_list *list;
	enum state state;
	int down, up;		 /* to the command, to the host; -1: none */
	struct event down_event; /* the command sends */
	struct event out_event;	 /* the command has room for `out` */
	struct event up_event;	 /* the host sends its head */
	struct event deadline;
	struct buf in;	 /* from the command, not yet used */
	struct buf out;	 /* for the command, before the relay */
	struct buf head; /* for the host */
	struct buf back; /* from the host, not yet used */
	struct proxy_pipe to_host, to_command;
	struct proxy_dial *dial; /* DIALING */
	uint32_t ask;		 /* ASKING */
	uint16_t client_port;

	bool greeted; /* SOCKS5 */
	enum netproxy_protocol protocol;
	struct host_name host;
	uint16_t port;
	char method[NETPROXY_METHOD_BYTES];
	struct proxy_verdict verdict;
	bool no_body;  /* the response to HEAD */
	bool upgraded; /* to another protocol: WebSocket */
	bool down_end; /* the command sends nothing more */
};

static struct event_base *loop_base;

static bool
is_tunnel(const struct proxy_client *c)
{
	return c->protocol != NETPROXY_HTTP;
}

static bool
is_socks(const struct proxy_client *c)
{
	return c->protocol == NETPROXY_SOCKS5_TCP ||
	       c->protocol == NETPROXY_SOCKS5_UDP;
}

/* The host is not needed any more. */
static void
leave_host(struct proxy_client *c)
{
	if (c->dial != NULL)
		proxy_dial_cancel(c->dial);
	c->dial = NULL;
	proxy_pipe_stop(&c->to_host);
	proxy_pipe_stop(&c->to_command);
	event_del(&c->up_event);
	if (c->up >= 0)
		close(c->up);
	c->up = -1;
}

static void
client_free(struct proxy_client *c)
{
	LIST_REMOVE(c, link);
	netproxy_control_left(c->list);
	leave_host(c);
	event_del(&c->down_event);
	event_del(&c->out_event);
	event_del(&c->deadline);
	close(c->down);
	buf_clear(&c->in);
	buf_clear(&c->out);
	buf_clear(&c->head);
	buf_clear(&c->back);
	free(c);
}

/* Both sides see that this is not how it should have ended. */
static void
client_reset(struct proxy_client *c)
{
	const struct linger none = { .l_onoff = 1 };

	setsockopt(c->down, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	if (c->up >= 0)
		setsockopt(c->up, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	client_free(c);
}

static void
set_deadline(struct proxy_client *c, int seconds)
{
	const struct timeval after = { .tv_sec = seconds };

	event_del(&c->deadline);
	if (seconds > 0)
		loop_add(&c->deadline, &after);
}

/*
 * Reads what is there. Returns 1, 0 at the end, or -errno; -EAGAIN is no error,
 * -ENOBUFS says that the buffer is full.
 */
static int
read_some(int fd, struct buf *b)
{
	size_t room = b->limit - b->len;
	size_t most = room < 16384 ? room : 16384;
	ssize_t n;

	if (most == 0)
		return -ENOBUFS;
	n = recv(fd, buf_reserve(b, most), most, MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	buf_commit(b, (size_t)n);
	return n > 0;
}

static void
fill_decision(const struct proxy_client *c, enum netproxy_source source,
    enum netproxy_reason reason, struct netproxy_decided *d)
{
	*d = (struct netproxy_decided){ .list = c->list->number,
		.target = { .protocol = c->protocol, .port = c->port },
		.allowed = c->state == RELAYING,
		.source = source,
		.reason = reason,
		.client_port = c->client_port };
	memcpy(d->target.host, c->host.text, sizeof(c->host.text));
	memcpy(d->method, c->method, sizeof(c->method));
	memcpy(d->rule, c->verdict.rule, sizeof(c->verdict.rule));
}

static void
tell_decision(const struct netproxy_decided *d)
{
	const union netproxy_message m = { .decided = *d };

	netproxy_control_tell(NETPROXY_DECIDED, &m);
}

/* A connection that was allowed is cut. c is gone afterwards. */
static void
cut(struct proxy_client *c, enum netproxy_source source,
    enum netproxy_reason reason)
{
	struct netproxy_decided d;

	fill_decision(c, source, reason, &d);
	d.allowed = false;
	tell_decision(&d);
	client_reset(c);
}

/* --- the end ------------------------------------------------------------ */

/* The reply is with the kernel: what the command still sends is read and
 * dropped, because unread bytes would make the kernel drop the reply. */
static void
finish_sending(struct proxy_client *c)
{
	if (c->down_end) {
		client_free(c);
		return;
	}
	shutdown(c->down, SHUT_WR);
	set_deadline(c, LINGER_SECONDS);
}

/* Writes `out`. Returns false if c is gone. */
static bool
flush(struct proxy_client *c)
{
	while (c->out.len > 0) {
		ssize_t n = send(c->down, c->out.data, c->out.len,
		    MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN) {
			client_reset(c);
			return false;
		}
		if (n < 0) {
			loop_add(&c->out_event, NULL);
			return true;
		}
		buf_consume(&c->out, (size_t)n);
	}
	return true;
}

/* `out` is the last that the command gets. c may be gone afterwards. */
static void
end_after_reply(struct proxy_client *c)
{
	c->state = ENDING;
	set_deadline(c, 0);
	leave_host(c);
	loop_add(&c->down_event, NULL);
	if (flush(c) && c->out.len == 0)
		finish_sending(c);
}

static void
out_cb(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_client *c = arg;

	if (flush(c) && c->out.len == 0 && c->state == ENDING)
		finish_sending(c);
}

static void
reply_socks(struct proxy_client *c, enum socks_reply code)
{
	uint8_t bytes[SOCKS_REPLY_BYTES];

	socks_reply_write(bytes, code);
	buf_put(&c->out, bytes, sizeof(bytes));
}

static void
reply_denied(struct proxy_client *c, const struct netproxy_decided *d)
{
	if (is_socks(c))
		reply_socks(c, d->reason == NETPROXY_NO_UDP
				   ? SOCKS_BAD_COMMAND
				   : SOCKS_REFUSED_BY_RULES);
	else
		proxy_reply_denied(&c->out, d);
	end_after_reply(c);
}

static void
refuse(struct proxy_client *c, enum netproxy_source source,
    enum netproxy_reason reason)
{
	struct netproxy_decided d;

	fill_decision(c, source, reason, &d);
	tell_decision(&d);
	reply_denied(c, &d);
}

/* What is no matter of rules. */
static void
fail(struct proxy_client *c, int status, enum socks_reply code, const char *why)
{
	if (is_socks(c))
		reply_socks(c, code);
	else
		proxy_reply_failed(&c->out, status, c->host.text, why);
	end_after_reply(c);
}

static void
deadline_cb(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_client *c = arg;

	if (c->state == READING)
		fail(c, 400, SOCKS_FAILED, "the request was not whole in 30 s");
	else
		client_reset(c);
}

/* --- the relay ---------------------------------------------------------- */

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
	cut(c, NETPROXY_BY_LIMIT, NETPROXY_TOO_MUCH);
	return false;
}

/* Everything of one side was passed on. */
static void
done(void *arg, struct proxy_pipe *p)
{
	struct proxy_client *c = arg;

	if (p == &c->to_host)
		shutdown(c->up, SHUT_WR);
	else if (is_tunnel(c) || c->upgraded)
		shutdown(c->down, SHUT_WR);
	else if (c->to_command.limited && c->to_command.left > 0)
		client_reset(c); /* shorter than it said */
	else
		end_after_reply(c);
	if (c->state == RELAYING && c->to_host.done && c->to_command.done)
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
	    &c->to_host, loop_base, c->down, c->up, first, &pipe_events, c);
}

static void
start_to_command(struct proxy_client *c, struct buf *first)
{
	event_del(&c->out_event);
	proxy_pipe_start(
	    &c->to_command, loop_base, c->up, c->down, first, &pipe_events, c);
}

/*
 * Looks at the first record of a tunnel. Until it is whole nothing of it goes
 * to the host. c may be gone afterwards.
 */
static void
check_hello(struct proxy_client *c)
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
		cut(c, NETPROXY_BY_LIST, NETPROXY_OTHER_NAME);
	else if (moved(c, c->in.len))
		start_to_host(c, &c->in);
}

/* The answer's head is whole; `out` has it. */
static void
take_response(struct proxy_client *c, const struct proxy_response *r)
{
	struct proxy_pipe *p = &c->to_command;
	size_t n = c->back.len;

	event_del(&c->up_event);
	c->upgraded = r->status == 101;
	p->limited =
	    !c->upgraded && (r->has_length || r->no_body || c->no_body);
	p->left = r->no_body || c->no_body ? 0 : r->length;
	if (p->limited && n > p->left)
		n = (size_t)p->left;
	p->left -= p->limited ? n : 0;
	buf_put(&c->out, c->back.data, n);
	buf_clear(&c->back);
	if (c->out.failed)
		log_fatal("no room for the beginning of an answer");
	if (moved(c, n))
		start_to_command(c, &c->out);
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
	if (n < 0 || c->out.failed)
		fail(c, 502, SOCKS_FAILED,
		    "the server does not answer with HTTP/1.1");
	else if (n > 0)
		take_response(c, &r);
	else
		flush(c);
}

static void
up_cb(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_client *c = arg;
	int n = read_some(fd, &c->back);

	if (n == -EAGAIN)
		return;
	if (n > 0)
		read_response(c);
	else if (n == -ENOBUFS)
		fail(
		    c, 502, SOCKS_FAILED, "the head of the answer is too long");
	else
		fail(
		    c, 502, SOCKS_FAILED, "the server ended without an answer");
}

/* --- the host ----------------------------------------------------------- */

static bool
permit(void *arg, const struct in6_addr *address)
{
	struct proxy_client *c = arg;

	return proxy_list_permit(c->list, &c->host, address);
}

static void
set_options(int fd)
{
	const int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

/* Both directions of a tunnel, though what the command says first is looked at
 * before. */
static void
begin_tunnel(struct proxy_client *c)
{
	if (is_socks(c))
		reply_socks(c, SOCKS_OK);
	else
		buf_puts(
		    &c->out, "HTTP/1.1 200 Connection established\r\n\r\n");
	start_to_command(c, &c->out);
	check_hello(c);
}

static void
begin_http(struct proxy_client *c)
{
	buf_put(&c->head, c->in.data, c->in.len);
	buf_clear(&c->in);
	if (!moved(c, c->head.len))
		return;
	start_to_host(c, &c->head);
	event_assign(
	    &c->up_event, loop_base, c->up, EV_READ | EV_PERSIST, up_cb, c);
	loop_add(&c->up_event, NULL);
}

static void
connected(void *arg, int fd)
{
	struct proxy_client *c = arg;
	struct netproxy_decided d;

	c->dial = NULL;
	c->up = fd;
	c->state = RELAYING;
	set_options(fd);
	fill_decision(c, c->verdict.source, c->verdict.reason, &d);
	tell_decision(&d);
	if (is_tunnel(c))
		begin_tunnel(c);
	else
		begin_http(c);
}

static void
not_connected(void *arg, int err, const char *why)
{
	struct proxy_client *c = arg;

	c->dial = NULL;
	if (err == EACCES)
		refuse(c, NETPROXY_BY_LIST, NETPROXY_PRIVATE);
	else
		fail(c, err == ETIMEDOUT ? 504 : 502,
		    err == ECONNREFUSED ? SOCKS_REFUSED : SOCKS_UNREACHABLE,
		    why);
}

static const struct proxy_dial_events dial_events = {
	.permit = permit,
	.connected = connected,
	.failed = not_connected,
};

static void
dial(struct proxy_client *c)
{
	c->state = DIALING;
	c->dial = proxy_dial(&c->host, c->port, &dial_events, c);
}

/* --- the judgement ------------------------------------------------------ */

/* Asks the client of execd; the runner answers in any case. */
static void
ask(struct proxy_client *c)
{
	static uint32_t number;
	union netproxy_message m = { .ask = { .list = c->list->number,
					 .ask = ++number } };

	c->state = ASKING;
	c->ask = number;
	m.ask.target.protocol = c->protocol;
	m.ask.target.port = c->port;
	memcpy(m.ask.target.host, c->host.text, sizeof(c->host.text));
	netproxy_control_tell(NETPROXY_ASK, &m);
}

void
proxy_client_answered(struct proxy_list *l, uint32_t number, bool allowed)
{
	struct proxy_client *c;

	LIST_FOREACH(c, &l->clients, link)
	if (c->state == ASKING && c->ask == number)
		break;
	if (c == NULL)
		return;
	c->verdict.source = NETPROXY_BY_CLIENT;
	if (allowed)
		dial(c);
	else
		refuse(c, NETPROXY_BY_CLIENT, c->verdict.reason);
}

/* What a mode forbids whatever the host is. Returns false if it is refused. */
static bool
check_mode(struct proxy_client *c)
{
	if (!c->list->limited)
		return true;
	if (is_tunnel(c))
		refuse(c, NETPROXY_BY_MODE, NETPROXY_NO_TUNNELS);
	else if (strcmp(c->method, "GET") && strcmp(c->method, "HEAD") &&
		 strcmp(c->method, "OPTIONS"))
		refuse(c, NETPROXY_BY_MODE, NETPROXY_BAD_METHOD);
	else
		return true;
	return false;
}

/* The request is whole. */
static void
judge(struct proxy_client *c)
{
	enum network_way way = is_tunnel(c) ? NETWORK_TUNNEL : NETWORK_HTTP;

	set_deadline(c, 0);
	event_del(&c->down_event);
	proxy_list_judge(c->list, &c->host, c->port, way, &c->verdict);
	if (!c->verdict.allowed && !c->verdict.ask)
		refuse(c, c->verdict.source, c->verdict.reason);
	else if (!check_mode(c))
		return;
	else if (c->verdict.ask)
		ask(c);
	else
		dial(c);
}

/* --- the request -------------------------------------------------------- */

static void
take_http(struct proxy_client *c, const struct proxy_request *r)
{
	c->protocol = r->connect ? NETPROXY_HTTPS_CONNECT : NETPROXY_HTTP;
	c->port = r->port;
	memcpy(c->method, r->method.ptr, r->method.len);
	c->no_body = slice_equal(r->method, SLICE("HEAD"));
	if (proxy_host_read(&c->host, r->host) < 0) {
		c->host.text[0] = '\0';
		fail(c, 400, SOCKS_FAILED, "the request names no valid host");
		return;
	}
	if (!r->connect)
		proxy_request_write(&c->head, r);
	buf_consume(&c->in, r->head.len + 2);
	judge(c);
}

static void
read_http(struct proxy_client *c)
{
	const char *why = "the head of the request is too long";
	struct proxy_request r;
	ssize_t n =
	    proxy_request_parse(&r, (const char *)c->in.data, c->in.len, &why);

	if (n < 0)
		fail(c, 400, SOCKS_FAILED, why);
	else if (n > 0)
		take_http(c, &r);
}

static void
refuse_socks(struct proxy_client *c, enum socks_reply code)
{
	reply_socks(c, code);
	end_after_reply(c);
}

static void
take_socks(struct proxy_client *c, const struct socks_request *r)
{
	const struct slice host = { r->host, strlen(r->host) };

	c->protocol = r->udp ? NETPROXY_SOCKS5_UDP : NETPROXY_SOCKS5_TCP;
	c->port = r->port;
	if (host.len == 0 || proxy_host_read(&c->host, host) < 0)
		refuse_socks(c, SOCKS_BAD_ADDRESS);
	else if (r->udp)
		refuse(c, NETPROXY_BY_MODE, NETPROXY_NO_UDP);
	else if (!r->connect || r->port == 0)
		refuse_socks(c, SOCKS_BAD_COMMAND);
	else
		judge(c);
}

/* Returns true if the greeting was answered, and c waits for the request. */
static bool
greet_socks(struct proxy_client *c)
{
	bool accepted = false;
	ssize_t n = socks_greeting_parse(
	    (const char *)c->in.data, c->in.len, &accepted);
	const uint8_t answer[2] = { SOCKS_VERSION, accepted ? 0 : 0xff };

	if (n <= 0)
		return false;
	buf_consume(&c->in, (size_t)n);
	buf_put(&c->out, answer, sizeof(answer));
	c->greeted = true;
	if (!accepted)
		end_after_reply(c);
	return accepted && flush(c);
}

static void
read_socks(struct proxy_client *c)
{
	struct socks_request r;
	ssize_t n;

	c->protocol = NETPROXY_SOCKS5_TCP;
	if (!c->greeted && !greet_socks(c))
		return;
	n = socks_request_parse(&r, (const char *)c->in.data, c->in.len);
	if (n < 0)
		refuse_socks(c, SOCKS_FAILED);
	if (n <= 0)
		return;
	buf_consume(&c->in, (size_t)n);
	take_socks(c, &r);
}

/* --- the command's end of the connection -------------------------------- */

/* The first byte tells: no method of HTTP begins with it. */
static void
take_bytes(struct proxy_client *c)
{
	if (c->state == RELAYING)
		check_hello(c);
	else if (c->state == ENDING)
		buf_consume(&c->in, c->in.len);
	else if (c->greeted || c->in.data[0] == SOCKS_VERSION)
		read_socks(c);
	else
		read_http(c);
}

static void
take_end(struct proxy_client *c)
{
	c->down_end = true;
	event_del(&c->down_event);
	if (c->state == RELAYING)
		check_hello(c);
	else if (c->state != ENDING || c->out.len == 0)
		client_free(c);
}

static void
down_cb(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_client *c = arg;
	int n = read_some(fd, &c->in);

	if (n > 0)
		take_bytes(c);
	else if (n == 0)
		take_end(c);
	else if (n != -EAGAIN)
		client_reset(c);
}

static uint16_t
peer_port(int fd)
{
	struct sockaddr_storage from = { 0 };
	socklen_t len = sizeof(from);
	const struct sockaddr_in *in = (const void *)&from;

	/* The port lies at the same place for both kinds of addresses. */
	if (getpeername(fd, (struct sockaddr *)&from, &len) < 0)
		return 0;
	return ntohs(in->sin_port);
}

/* Who comes while the limit is reached is told, the runner once. */
static void
refuse_by_limit(struct proxy_client *c, enum netproxy_reason reason)
{
	struct netproxy_decided d;

	fill_decision(c, NETPROXY_BY_LIMIT, reason, &d);
	if (!c->list->told_limit)
		tell_decision(&d);
	c->list->told_limit = true;
	reply_denied(c, &d);
}

void
proxy_client_new(struct proxy_list *l, int fd)
{
	struct proxy_client *c = xcalloc(1, sizeof(*c));

	c->list = l;
	c->client_port = peer_port(fd);
	c->down = fd;
	c->up = -1;
	buf_init(&c->in, BUFFER_MAX);
	buf_init(&c->out, BUFFER_MAX);
	buf_init(&c->head, 2 * BUFFER_MAX);
	buf_init(&c->back, BUFFER_MAX / 2);
	set_options(fd);
	event_assign(
	    &c->down_event, loop_base, fd, EV_READ | EV_PERSIST, down_cb, c);
	event_assign(&c->out_event, loop_base, fd, EV_WRITE, out_cb, c);
	event_assign(&c->up_event, loop_base, -1, 0, up_cb, c);
	event_assign(&c->deadline, loop_base, -1, 0, deadline_cb, c);
	LIST_INSERT_HEAD(&l->clients, c, link);
	l->connections++;
	set_deadline(c, HEAD_SECONDS);
	loop_add(&c->down_event, NULL);
	if (l->connections > l->most)
		refuse_by_limit(c, NETPROXY_TOO_MANY);
	else if (l->most_bytes > 0 && l->bytes > l->most_bytes)
		refuse_by_limit(c, NETPROXY_TOO_MUCH);
}

void
proxy_client_end_all(struct proxy_list *l)
{
	while (!LIST_EMPTY(&l->clients))
		client_reset(LIST_FIRST(&l->clients));
}

void
proxy_client_init(struct event_base *base)
{
	loop_base = base;
}
