/* SPDX-License-Identifier: ISC */
/* A request is read, its host judged and connected to. */
#include <event2/event.h>

#include "base.h"
#include "loop.h"
#include "netproxy_control.h"
#include "own_ports.h"
#include "proxy_client_parts.h"
#include "proxy_names.h"

/* --- the host ----------------------------------------------------------- */

static bool
permit(void *arg, const struct in6_addr *address)
{
	struct proxy_client *c = arg;

	c->refusal = c->verdict;
	c->refusal.reason = NETPROXY_PRIVATE;
	/* On its loopback a program means the sandbox's own. */
	if (c->list->redirected >= 0 && client_is_direct(c) &&
	    address_is_loopback(address))
		return false;
	return proxy_list_permit(
	    c->list, &c->host, c->port, address, &c->refusal);
}

static void
connected(void *arg, int fd)
{
	struct proxy_client *c = arg;
	struct netproxy_decided d;

	c->dial = NULL;
	c->up = fd;
	c->state = RELAYING;
	client_set_options(fd);
	client_decide(c, c->verdict.source, c->verdict.reason, &d);
	client_tell(&d);
	relay_begin(c);
}

static void
not_connected(void *arg, int err, const char *why)
{
	struct proxy_client *c = arg;

	c->dial = NULL;
	if (err == EACCES) {
		c->verdict = c->refusal;
		client_refuse(c, c->refusal.source, c->refusal.reason);
	} else if (err == OWN_PORTS_ERRNO)
		client_refuse(c, NETPROXY_BY_OPERATOR, NETPROXY_OWN_PORT);
	else
		client_fail(c, err == ETIMEDOUT ? 504 : 502,
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
		client_refuse(c, NETPROXY_BY_CLIENT, c->verdict.reason);
}

/* What a mode forbids whatever the host is. Returns false if it is refused. */
static bool
check_mode(struct proxy_client *c)
{
	if (!c->list->limited)
		return true;
	if (client_is_tunnel(c) || c->chunked || c->upgrade)
		client_refuse(c, NETPROXY_BY_MODE, NETPROXY_NO_TUNNELS);
	else if (strcmp(c->method, "GET") && strcmp(c->method, "HEAD") &&
		 strcmp(c->method, "OPTIONS"))
		client_refuse(c, NETPROXY_BY_MODE, NETPROXY_BAD_METHOD);
	else
		return true;
	return false;
}

/* The request is whole. */
void
request_judge(struct proxy_client *c)
{
	enum network_way way =
	    client_is_tunnel(c) ? NETWORK_TUNNEL : NETWORK_HTTP;

	client_set_deadline(c, 0);
	event_del(&c->down_event);
	proxy_list_judge(c->list, &c->host, c->port, way, &c->verdict);
	if (!c->verdict.allowed && !c->verdict.ask)
		client_refuse(c, c->verdict.source, c->verdict.reason);
	else if (!check_mode(c))
		return;
	else if (c->verdict.ask)
		ask(c);
	else
		dial(c);
}
/* --- the request -------------------------------------------------------- */

static void
take_framing(struct proxy_client *c, const struct proxy_request *r)
{
	memset(c->method, 0, sizeof(c->method));
	memcpy(c->method, r->method.ptr, r->method.len);
	c->chunked = r->chunked;
	c->upgrade = r->upgrade;
	c->length = r->length;
	c->no_body = slice_equal(r->method, SLICE("HEAD"));
	if (!r->connect)
		proxy_request_write(&c->head, r);
}

static void
take_http(struct proxy_client *c, const struct proxy_request *r)
{
	c->protocol = r->connect ? NETPROXY_HTTPS_CONNECT : NETPROXY_HTTP;
	c->port = r->port;
	take_framing(c, r);
	if (proxy_host_read(&c->host, r->host) < 0) {
		c->host.text[0] = '\0';
		client_fail(
		    c, 400, SOCKS_FAILED, "the request names no valid host");
		return;
	}
	buf_consume(&c->in, r->head.len + 2);
	request_judge(c);
}

/* Reads a head. Returns false if it is not whole, or c ends with a reply. */
static bool
read_head(struct proxy_client *c, const struct host_name *tunnel,
    struct proxy_request *r)
{
	const char *why = "the head of the request is too long";
	ssize_t n = proxy_request_parse(
	    r, tunnel, (const char *)c->in.data, c->in.len, &why);

	if (n < 0)
		client_fail(c, 400, SOCKS_FAILED, why);
	return n > 0;
}

void
request_read_inside(struct proxy_client *c)
{
	struct proxy_request r;

	loop_add(&c->down_event, NULL);
	if (!read_head(c, &c->host, &r))
		return;
	event_del(&c->down_event);
	c->state = RELAYING;
	take_framing(c, &r);
	buf_consume(&c->in, r.head.len + 2);
	relay_http(c);
}

static void
read_http(struct proxy_client *c)
{
	struct proxy_request r;

	if (read_head(c, NULL, &r))
		take_http(c, &r);
}

static void
refuse_socks(struct proxy_client *c, enum socks_reply code)
{
	client_reply_socks(c, code);
	client_end(c);
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
		client_refuse(c, NETPROXY_BY_MODE, NETPROXY_NO_UDP);
	else if (!r->connect || r->port == 0)
		refuse_socks(c, SOCKS_BAD_COMMAND);
	else
		request_judge(c);
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
		client_end(c);
	return accepted && client_flush(c);
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
/* Each message of DNS has its length before it (RFC 1035 section 4.2.2). */
static void
read_dns(struct proxy_client *c)
{
	uint8_t answer[2 + DNS_ANSWER_MAX];
	size_t len, n;

	while (c->in.len >= 2) {
		len = (size_t)(c->in.data[0] << 8 | c->in.data[1]);
		if (len <= DNS_QUERY_MAX && c->in.len < 2 + len)
			break;
		n = len > DNS_QUERY_MAX
			? 0
			: proxy_names_answer(c->list, c->in.data + 2, len,
			      c->client_port, answer + 2);
		answer[0] = (uint8_t)(n >> 8);
		answer[1] = (uint8_t)n;
		buf_put(&c->out, answer, 2 + n);
		if (n == 0 || c->out.failed) {
			client_reset(c);
			return;
		}
		buf_consume(&c->in, 2 + len);
		client_set_deadline(c, HEAD_SECONDS);
	}
	client_flush(c);
}

/* The first byte tells: no method of HTTP begins with it. */
void
request_read(struct proxy_client *c)
{
	if (c->protocol == NETPROXY_DNS)
		read_dns(c);
	else if (c->greeted || c->in.data[0] == SOCKS_VERSION)
		read_socks(c);
	else
		read_http(c);
}
