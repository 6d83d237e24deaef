/* SPDX-License-Identifier: ISC */
#include "netproxy_message.h"

#include "fields.h"

/* The members of `target`. */
#define TARGET(type)                                                           \
	FIELD_BELOW(type, target.protocol, NETPROXY_PROTOCOLS),                \
	    FIELD(FIELD_PORT, type, target.port), FIELD_OF(type, target.host)

static const struct field decided_fields[] = {
	FIELD_OF(netproxy_decided, list),
	TARGET(netproxy_decided),
	FIELD_OF(netproxy_decided, allowed),
	FIELD_BELOW(netproxy_decided, source, NETPROXY_SOURCES),
	FIELD_BELOW(netproxy_decided, reason, NETPROXY_REASONS),
	FIELD(FIELD_PORT, netproxy_decided, client_port),
	FIELDS(netproxy_decided, method, rule),
};

static const struct field ask_fields[] = {
	FIELDS(netproxy_ask, list, ask),
	TARGET(netproxy_ask),
};

/* By type. The rules of OPEN and the ports of NAME follow these fields. */
static const struct {
	const struct field *fields;
	size_t count;
} layouts[] = {
	[NETPROXY_OPEN] = { ROW_FIELDS(netproxy_open, list, connections, bytes,
	    asks, limited, allow_local, redirected, resolver, names) },
	[NETPROXY_CLOSE] = { ROW_FIELDS(netproxy_close, list) },
	[NETPROXY_ANSWER] = { ROW_FIELDS(netproxy_answer, list, ask, allowed) },
	[NETPROXY_DECIDED] = { decided_fields, nitems(decided_fields) },
	[NETPROXY_ASK] = { ask_fields, nitems(ask_fields) },
	[NETPROXY_NAME] = { ROW_FIELDS(netproxy_name, list, name, nports) },
	[NETPROXY_NAMED] = { ROW_FIELDS(
	    netproxy_named, list, name, address, over, full) },
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
