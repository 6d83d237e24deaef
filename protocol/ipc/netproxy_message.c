/* SPDX-License-Identifier: ISC */
#include "netproxy_message.h"

#include <errno.h>
#include <string.h>

static void
put_text(struct buf *b, const char *text)
{
	buf_put_string(b, text, strlen(text));
}

static void
put_target(struct buf *b, const struct netproxy_target *t)
{
	buf_put_u8(b, (uint8_t)t->protocol);
	buf_put_u32(b, t->port);
	put_text(b, t->host);
}

static void
put_open(struct buf *b, const struct netproxy_open *o)
{
	buf_put_u32(b, o->list);
	buf_put_u32(b, o->connections);
	buf_put_u64(b, o->bytes);
	buf_put_u8(b, o->asks);
	buf_put_u8(b, o->limited);
	buf_put_u8(b, o->allow_local);
	buf_put_string(b, o->rules.ptr, o->rules.len);
}

static void
put_decided(struct buf *b, const struct netproxy_decided *d)
{
	buf_put_u32(b, d->list);
	put_target(b, &d->target);
	buf_put_u8(b, d->allowed);
	buf_put_u8(b, (uint8_t)d->source);
	buf_put_u8(b, (uint8_t)d->reason);
	buf_put_u32(b, d->client_port);
	put_text(b, d->method);
	put_text(b, d->rule);
}

static void
put_name(struct buf *b, const struct netproxy_name *n)
{
	buf_put_u32(b, n->list);
	buf_put_u32(b, n->name);
	buf_put_u32(b, n->nports);
	for (uint32_t i = 0; i < n->nports; i++)
		buf_put_u32(b, n->ports[i]);
}

static void
put_named(struct buf *b, const struct netproxy_named *n)
{
	buf_put_u32(b, n->list);
	buf_put_u32(b, n->name);
	buf_put_u32(b, n->address);
	buf_put_u8(b, n->over);
	buf_put_u8(b, n->full);
}

void
netproxy_put(
    struct buf *b, enum netproxy_type type, const union netproxy_message *m)
{
	buf_put_u8(b, (uint8_t)type);
	switch (type) {
	case NETPROXY_OPEN:
		put_open(b, &m->open);
		break;
	case NETPROXY_CLOSE:
		buf_put_u32(b, m->close.list);
		break;
	case NETPROXY_ANSWER:
		buf_put_u32(b, m->answer.list);
		buf_put_u32(b, m->answer.ask);
		buf_put_u8(b, m->answer.allowed);
		break;
	case NETPROXY_DECIDED:
		put_decided(b, &m->decided);
		break;
	case NETPROXY_ASK:
		buf_put_u32(b, m->ask.list);
		buf_put_u32(b, m->ask.ask);
		put_target(b, &m->ask.target);
		break;
	case NETPROXY_NAME:
		put_name(b, &m->name);
		break;
	case NETPROXY_NAMED:
		put_named(b, &m->named);
		break;
	}
}

/* Reads a number below `end`. */
static unsigned
get_below(struct buf_reader *r, unsigned end)
{
	unsigned n = buf_get_u8(r);

	if (n >= end)
		r->failed = true;
	return n;
}

static bool
get_bool(struct buf_reader *r)
{
	return get_below(r, 2);
}

static uint16_t
get_port(struct buf_reader *r)
{
	uint32_t port = buf_get_u32(r);

	if (port > UINT16_MAX)
		r->failed = true;
	return (uint16_t)port;
}

static void
get_target(struct buf_reader *r, struct netproxy_target *t)
{
	t->protocol = get_below(r, NETPROXY_PROTOCOLS);
	t->port = get_port(r);
	buf_get_string(r, t->host, sizeof(t->host));
}

static void
get_open(struct buf_reader *r, struct netproxy_open *o)
{
	o->list = buf_get_u32(r);
	o->connections = buf_get_u32(r);
	o->bytes = buf_get_u64(r);
	o->asks = get_bool(r);
	o->limited = get_bool(r);
	o->allow_local = get_bool(r);
	o->rules.len = buf_get_u32(r);
	o->rules.ptr = (const char *)r->p;
	if (r->failed || o->rules.len != r->left ||
	    o->rules.len > NETPROXY_RULES_MAX)
		r->failed = true;
	r->left = 0;
}

static void
get_decided(struct buf_reader *r, struct netproxy_decided *d)
{
	d->list = buf_get_u32(r);
	get_target(r, &d->target);
	d->allowed = get_bool(r);
	d->source = get_below(r, NETPROXY_SOURCES);
	d->reason = get_below(r, NETPROXY_REASONS);
	d->client_port = get_port(r);
	buf_get_string(r, d->method, sizeof(d->method));
	buf_get_string(r, d->rule, sizeof(d->rule));
}

static void
get_name(struct buf_reader *r, struct netproxy_name *n)
{
	n->list = buf_get_u32(r);
	n->name = buf_get_u32(r);
	n->nports = buf_get_u32(r);
	if (n->nports == 0 || n->nports > NETPROXY_PORTS_MAX)
		r->failed = true;
	for (uint32_t i = 0; !r->failed && i < n->nports; i++)
		n->ports[i] = get_port(r);
}

static void
get_named(struct buf_reader *r, struct netproxy_named *n)
{
	n->list = buf_get_u32(r);
	n->name = buf_get_u32(r);
	n->address = buf_get_u32(r);
	n->over = get_bool(r);
	n->full = get_bool(r);
}

int
netproxy_get(const void *message, size_t len, union netproxy_message *m)
{
	struct buf_reader r;
	int type;

	memset(m, 0, sizeof(*m));
	buf_reader_init(&r, message, len);
	type = buf_get_u8(&r);
	switch (type) {
	case NETPROXY_OPEN:
		get_open(&r, &m->open);
		break;
	case NETPROXY_CLOSE:
		m->close.list = buf_get_u32(&r);
		break;
	case NETPROXY_ANSWER:
		m->answer.list = buf_get_u32(&r);
		m->answer.ask = buf_get_u32(&r);
		m->answer.allowed = get_bool(&r);
		break;
	case NETPROXY_DECIDED:
		get_decided(&r, &m->decided);
		break;
	case NETPROXY_ASK:
		m->ask.list = buf_get_u32(&r);
		m->ask.ask = buf_get_u32(&r);
		get_target(&r, &m->ask.target);
		break;
	case NETPROXY_NAME:
		get_name(&r, &m->name);
		break;
	case NETPROXY_NAMED:
		get_named(&r, &m->named);
		break;
	default:
		return -EBADMSG;
	}
	return buf_end(&r) < 0 ? -EBADMSG : type;
}

bool
netproxy_is_direct(enum netproxy_protocol p)
{
	return p == NETPROXY_DIRECT_TCP || p == NETPROXY_DNS;
}

/* --- names --------------------------------------------------------------- */

const char *
netproxy_protocol_name(enum netproxy_protocol p)
{
	static const char *const names[NETPROXY_PROTOCOLS] = { "http",
		"https_connect", "socks5_tcp", "socks5_udp", "direct_tcp",
		"dns", "http_request" };

	return names[p];
}

const char *
netproxy_source_name(enum netproxy_source s)
{
	static const char *const names[NETPROXY_SOURCES] = { "baseline_policy",
		"decider", "mode_guard", "operator", "limit" };

	return names[s];
}

const char *
netproxy_decider_name(enum netproxy_source s)
{
	static const char *const names[NETPROXY_SOURCES] = { "list", "client",
		"mode", "operator", "limit" };

	return names[s];
}

const char *
netproxy_reason_name(enum netproxy_reason r)
{
	static const char *const names[NETPROXY_REASONS] = {
		[NETPROXY_LISTED] = "allow",
		[NETPROXY_DENIED] = "denied",
		[NETPROXY_NOT_LISTED] = "not_allowed",
		[NETPROXY_PORT_CLOSED] = "port_not_allowed",
		[NETPROXY_PRIVATE] = "not_allowed_local",
		[NETPROXY_BAD_METHOD] = "method_not_allowed",
		[NETPROXY_NO_TUNNELS] = "mitm_required",
		[NETPROXY_OTHER_NAME] = "other_server_name",
		[NETPROXY_NO_UDP] = "udp_not_supported",
		[NETPROXY_TOO_MANY] = "too_many_connections",
		[NETPROXY_TOO_MUCH] = "too_many_bytes",
		[NETPROXY_BAD_LIST] = "bad_list",
		[NETPROXY_TOO_MANY_NAMES] = "too_many_names",
		[NETPROXY_NOT_STARTED] = "proxy_not_started",
	};

	return names[r];
}
