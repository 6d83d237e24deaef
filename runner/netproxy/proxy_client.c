/* SPDX-License-Identifier: ISC */
/*
 * The states of a connection follow each other: the head is read, its host
 * judged (and the client of execd asked), the host connected to, the bytes
 * relayed. Who is refused gets a reply and then the end.
 */
#include <event2/event.h>
#include <netinet/tcp.h>

#include "base.h"
#include "loop.h"
#include "netproxy_control.h"
#include "proxy_client_parts.h"
#include "proxy_reply.h"

struct event_base *proxy_base;

bool
client_is_tunnel(const struct proxy_client *c)
{
	return c->protocol != NETPROXY_HTTP && !c->inside;
}

bool
client_is_socks(const struct proxy_client *c)
{
	return !c->inside && (c->protocol == NETPROXY_SOCKS5_TCP ||
				 c->protocol == NETPROXY_SOCKS5_UDP);
}

bool
client_is_direct(const struct proxy_client *c)
{
	return !c->inside && netproxy_is_direct(c->protocol);
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
	if (event_initialized(&c->up_event))
		event_del(&c->up_event);
	if (c->up >= 0)
		close(c->up);
	c->up = -1;
}

/* With `abort`, close(2) lets the other side see that it was no proper end. */
static void
set_abort(int fd, bool abort)
{
	const struct linger l = { .l_onoff = abort };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
}

static void
drop(struct proxy_client *c)
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

void
client_free(struct proxy_client *c)
{
	set_abort(c->down, false);
	drop(c);
}

void
client_reset(struct proxy_client *c)
{
	if (c->up >= 0)
		set_abort(c->up, true);
	drop(c);
}

void
client_set_deadline(struct proxy_client *c, int seconds)
{
	event_del(&c->deadline);
	if (seconds > 0)
		loop_add_ms(&c->deadline, (uint64_t)seconds * 1000);
}

int
client_read(int fd, struct buf *b)
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

void
client_decide(const struct proxy_client *c, enum netproxy_source source,
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

void
client_tell(const struct netproxy_decided *d)
{
	const union netproxy_message m = { .decided = *d };

	netproxy_control_tell(NETPROXY_DECIDED, &m);
}

void
client_cut(struct proxy_client *c, enum netproxy_source source,
    enum netproxy_reason reason)
{
	struct netproxy_decided d;

	client_decide(c, source, reason, &d);
	d.allowed = false;
	client_tell(&d);
	client_reset(c);
}
void
client_set_options(int fd)
{
	const int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
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
	client_set_deadline(c, LINGER_SECONDS);
}

bool
client_flush(struct proxy_client *c)
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

void
client_end(struct proxy_client *c)
{
	c->state = ENDING;
	client_set_deadline(c, 0);
	leave_host(c);
	loop_add(&c->down_event, NULL);
	if (client_flush(c) && c->out.len == 0)
		finish_sending(c);
}

static void
out_cb(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_client *c = arg;

	if (client_flush(c) && c->out.len == 0 && c->state == ENDING)
		finish_sending(c);
}

void
client_reply_socks(struct proxy_client *c, enum socks_reply code)
{
	uint8_t bytes[SOCKS_REPLY_BYTES];

	socks_reply_write(bytes, code);
	buf_put(&c->out, bytes, sizeof(bytes));
}

static void
reply_denied(struct proxy_client *c, const struct netproxy_decided *d)
{
	if (client_is_direct(c)) {
		client_reset(c);
		return;
	}
	if (client_is_socks(c))
		client_reply_socks(c, d->reason == NETPROXY_NO_UDP
					  ? SOCKS_BAD_COMMAND
					  : SOCKS_REFUSED_BY_RULES);
	else
		proxy_reply_denied(&c->out, d);
	client_end(c);
}

void
client_refuse(struct proxy_client *c, enum netproxy_source source,
    enum netproxy_reason reason)
{
	struct netproxy_decided d;

	client_decide(c, source, reason, &d);
	client_tell(&d);
	reply_denied(c, &d);
}

void
client_fail(
    struct proxy_client *c, int status, enum socks_reply code, const char *why)
{
	if (client_is_direct(c)) {
		client_reset(c);
		return;
	}
	if (client_is_socks(c))
		client_reply_socks(c, code);
	else
		proxy_reply_failed(&c->out, status, c->host.text, why);
	client_end(c);
}

static void
deadline_cb(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_client *c = arg;

	if (c->state == READING)
		client_fail(
		    c, 400, SOCKS_FAILED, "the request was not whole in 30 s");
	else
		client_reset(c);
}
/* --- the command's end of the connection -------------------------------- */

/* What comes behind a request is no second one, and is dropped. */
static void
take_bytes(struct proxy_client *c)
{
	if (c->state == READING)
		request_read(c);
	else if (c->state == READING_INSIDE)
		request_read_inside(c);
	else if (c->state == RELAYING && client_is_tunnel(c))
		relay_check_hello(c);
	else if (c->state == RELAYING && c->chunked)
		relay_chunks(c);
	else
		buf_consume(&c->in, c->in.len);
}

static void
take_end(struct proxy_client *c)
{
	c->down_end = true;
	event_del(&c->down_event);
	if (c->state == RELAYING && client_is_tunnel(c))
		relay_check_hello(c);
	else if (c->state == RELAYING)
		shutdown(c->up, SHUT_WR);
	else if (c->state != ENDING || c->out.len == 0)
		client_free(c);
}

static void
down_cb(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_client *c = arg;
	int n = client_read(fd, &c->in);

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

	client_decide(c, NETPROXY_BY_LIMIT, reason, &d);
	if (!c->list->told_limit)
		client_tell(&d);
	c->list->told_limit = true;
	reply_denied(c, &d);
}

static struct proxy_client *
client_new(struct proxy_list *l, int fd)
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
	client_set_options(fd);
	/* Until it is known how it ends: if this program is killed, the command
	 * must not take what it got for all. */
	set_abort(fd, true);
	event_assign(
	    &c->down_event, proxy_base, fd, EV_READ | EV_PERSIST, down_cb, c);
	event_assign(&c->out_event, proxy_base, fd, EV_WRITE, out_cb, c);
	event_assign(&c->deadline, proxy_base, -1, 0, deadline_cb, c);
	LIST_INSERT_HEAD(&l->clients, c, link);
	l->connections++;
	client_set_deadline(c, HEAD_SECONDS);
	loop_add(&c->down_event, NULL);
	return c;
}

/* Returns false if a limit is reached. Then c was freed, or it ends soon. */
static bool
check_limits(struct proxy_client *c)
{
	const struct proxy_list *l = c->list;

	if (l->connections > l->most)
		refuse_by_limit(c, NETPROXY_TOO_MANY);
	else if (l->most_bytes > 0 && l->bytes > l->most_bytes)
		refuse_by_limit(c, NETPROXY_TOO_MUCH);
	else
		return true;
	return false;
}

void
proxy_client_new(struct proxy_list *l, int fd)
{
	check_limits(client_new(l, fd));
}

void
proxy_client_direct(
    struct proxy_list *l, int fd, const struct host_name *host, uint16_t port)
{
	struct proxy_client *c = client_new(l, fd);

	c->protocol = NETPROXY_DIRECT_TCP;
	c->host = *host;
	c->port = port;
	if (check_limits(c))
		request_judge(c);
}

void
proxy_client_resolve(struct proxy_list *l, int fd)
{
	struct proxy_client *c = client_new(l, fd);

	c->protocol = NETPROXY_DNS;
	check_limits(c);
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
	proxy_base = base;
}
