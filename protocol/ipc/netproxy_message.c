/* SPDX-License-Identifier: ISC */
#include "netproxy_message.h"

#include "fields.h"

static const struct field open_fields[] = {
	FIELD_OF(netproxy_open, list),
	FIELD_OF(netproxy_open, connections),
	FIELD_OF(netproxy_open, bytes),
	FIELD_OF(netproxy_open, asks),
	FIELD_OF(netproxy_open, limited),
	FIELD_OF(netproxy_open, allow_local),
	FIELD_OF(netproxy_open, redirected),
	FIELD_OF(netproxy_open, resolver),
	FIELD_OF(netproxy_open, names),
};

static const struct field close_fields[] = {
	FIELD_OF(netproxy_close, list),
};

static const struct field answer_fields[] = {
	FIELD_OF(netproxy_answer, list),
	FIELD_OF(netproxy_answer, ask),
	FIELD_OF(netproxy_answer, allowed),
};

static const struct field decided_fields[] = {
	FIELD_OF(netproxy_decided, list),
	FIELD_BELOW(netproxy_decided, target.protocol, NETPROXY_PROTOCOLS),
	FIELD(FIELD_PORT, netproxy_decided, target.port),
	FIELD(FIELD_STRING, netproxy_decided, target.host),
	FIELD_OF(netproxy_decided, allowed),
	FIELD_BELOW(netproxy_decided, source, NETPROXY_SOURCES),
	FIELD_BELOW(netproxy_decided, reason, NETPROXY_REASONS),
	FIELD(FIELD_PORT, netproxy_decided, client_port),
	FIELD(FIELD_STRING, netproxy_decided, method),
	FIELD(FIELD_STRING, netproxy_decided, rule),
};

static const struct field ask_fields[] = {
	FIELD_OF(netproxy_ask, list),
	FIELD_OF(netproxy_ask, ask),
	FIELD_BELOW(netproxy_ask, target.protocol, NETPROXY_PROTOCOLS),
	FIELD(FIELD_PORT, netproxy_ask, target.port),
	FIELD(FIELD_STRING, netproxy_ask, target.host),
};

static const struct field name_fields[] = {
	FIELD_OF(netproxy_name, list),
	FIELD_OF(netproxy_name, name),
	FIELD_OF(netproxy_name, nports),
};

static const struct field named_fields[] = {
	FIELD_OF(netproxy_named, list),
	FIELD_OF(netproxy_named, name),
	FIELD_OF(netproxy_named, address),
	FIELD_OF(netproxy_named, over),
	FIELD_OF(netproxy_named, full),
};

/* By type. The rules of OPEN and the ports of NAME follow these fields. */
static const struct {
	const struct field *fields;
	size_t count;
} layouts[] = {
	[NETPROXY_OPEN] = { open_fields, nitems(open_fields) },
	[NETPROXY_CLOSE] = { close_fields, nitems(close_fields) },
	[NETPROXY_ANSWER] = { answer_fields, nitems(answer_fields) },
	[NETPROXY_DECIDED] = { decided_fields, nitems(decided_fields) },
	[NETPROXY_ASK] = { ask_fields, nitems(ask_fields) },
	[NETPROXY_NAME] = { name_fields, nitems(name_fields) },
	[NETPROXY_NAMED] = { named_fields, nitems(named_fields) },
};

static const struct field port_field = { FIELD_PORT, 0, sizeof(uint16_t), 0 };

void
netproxy_put(
    struct buf *b, enum netproxy_type type, const union netproxy_message *m)
{
	buf_put_u8(b, (uint8_t)type);
	fields_put(b, layouts[type].fields, layouts[type].count, m);
	if (type == NETPROXY_OPEN)
		buf_put_string(b, m->open.rules.ptr, m->open.rules.len);
	for (uint32_t i = 0; type == NETPROXY_NAME && i < m->name.nports; i++)
		fields_put(b, &port_field, 1, &m->name.ports[i]);
}

static void
get_rules(struct buf_reader *r, struct slice *rules)
{
	rules->len = buf_get_u32(r);
	rules->ptr = (const char *)r->p;
	if (r->failed || rules->len != r->left ||
	    rules->len > NETPROXY_RULES_MAX)
		r->failed = true;
	r->left = 0;
}

static void
get_ports(struct buf_reader *r, struct netproxy_name *n)
{
	if (n->nports > NETPROXY_PORTS_MAX)
		r->failed = true;
	for (uint32_t i = 0; !r->failed && i < n->nports; i++)
		fields_get(r, &port_field, 1, &n->ports[i]);
}

int
netproxy_get(const void *message, size_t len, union netproxy_message *m)
{
	struct buf_reader r;
	unsigned type;

	memset(m, 0, sizeof(*m));
	buf_reader_init(&r, message, len);
	type = buf_get_u8(&r);
	if (type >= nitems(layouts) || layouts[type].fields == NULL)
		return -EBADMSG;
	fields_get(&r, layouts[type].fields, layouts[type].count, m);
	if (type == NETPROXY_OPEN)
		get_rules(&r, &m->open.rules);
	else if (type == NETPROXY_NAME)
		get_ports(&r, &m->name);
	return buf_end(&r) < 0 ? -EBADMSG : (int)type;
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
		[NETPROXY_OWN_PORT] = "own_port",
	};

	return names[r];
}
