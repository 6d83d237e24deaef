/* SPDX-License-Identifier: ISC */
#include "proxy_list.h"

#include <idn2.h>

#include "http_text.h"

int
proxy_host_read(struct host_name *host, struct slice text)
{
	_cleanup_free_ char *copy = NULL;
	char *ascii = NULL;
	int err = host_name_parse(host, text);

	if (err != -EILSEQ)
		return err;
	copy = xstrndup(text.ptr, text.len);
	if (idn2_lookup_u8((const uint8_t *)copy, (uint8_t **)&ascii,
		IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL) != IDN2_OK)
		return -EINVAL;
	err = host_name_parse(host, (struct slice){ ascii, strlen(ascii) });
	idn2_free(ascii);
	return err;
}

/* A pattern whose name is not ASCII: the stars and the port stay. */
static int
add_converted(struct network_rules *r, enum network_effect effect,
    struct slice pattern, char error[NETWORK_RULE_ERROR_MAX])
{
	struct slice host, port, name;
	struct host_name converted;
	char text[NETWORK_RULE_TEXT_MAX];
	int stars, n;

	host_port_split(pattern, &host, &port);
	name = host;
	while (name.len > 0 && (name.ptr[0] == '*' || name.ptr[0] == '.'))
		name = http_drop(name, 1);
	stars = (int)(name.ptr - host.ptr);
	if (proxy_host_read(&converted, name) < 0)
		return -EINVAL;
	n = snprintf(text, sizeof(text), "%.*s%s%s%.*s", stars, host.ptr,
	    converted.text, port.len > 0 ? ":" : "", (int)port.len, port.ptr);
	if (n < 0 || (size_t)n >= sizeof(text))
		return -EINVAL;
	return network_rules_add(
	    r, effect, (struct slice){ text, (size_t)n }, error);
}

/* The runner has looked at the patterns; only names that no domain can have are
 * still wrong. Without all of its rules a list would say something else. */
static void
add_rule(struct proxy_list *l, char letter, struct slice pattern)
{
	char error[NETWORK_RULE_ERROR_MAX];
	struct network_rules *r =
	    letter == 'A' || letter == 'D' ? &l->ceiling : &l->client;
	enum network_effect effect = letter == 'r' ? NETWORK_REVIEW
				     : letter == 'a' || letter == 'A'
					 ? NETWORK_ALLOW
					 : NETWORK_DENY;
	int err = network_rules_add(r, effect, pattern, error);

	if (err == -EILSEQ)
		err = add_converted(r, effect, pattern, error);
	if (err < 0) {
		l->bad = true;
		log_warn(0, "a list of hosts opens nothing: %s", error);
	}
}

static bool
has_port(const struct proxy_list *l, uint16_t port)
{
	for (size_t i = 0; i < l->nports; i++)
		if (l->ports[i] == port)
			return true;
	return false;
}

/* Those of every tunnel, and those that patterns name. If there is room, ssh,
 * which knows no proxy: a host that is listed without a port may be reached on
 * each, and no other port is missed by so many. */
static void
collect_ports(struct proxy_list *l)
{
	l->ports[l->nports++] = 443;
	l->ports[l->nports++] = 80;
	for (size_t i = 0; i < l->client.count; i++) {
		const struct network_rule *r = &l->client.rules[i];

		if (r->port == 0 || r->effect == NETWORK_DENY ||
		    has_port(l, r->port))
			continue;
		if (l->nports == NETPROXY_PORTS_MAX) {
			log_warn(0,
			    "a list of hosts names more than %d ports: port %u "
			    "and others are reached by the proxy alone",
			    NETPROXY_PORTS_MAX, r->port);
			return;
		}
		l->ports[l->nports++] = r->port;
	}
	if (l->nports < NETPROXY_PORTS_MAX && !has_port(l, 22))
		l->ports[l->nports++] = 22;
}

void
proxy_list_read(struct proxy_list *l, struct slice rules)
{
	struct slice line;

	while (rules.len > 0) {
		http_split(&rules, '\n', &line);
		if (line.len > 1)
			add_rule(l, line.ptr[0], http_drop(line, 1));
	}
	l->has_ceiling = network_rules_have(&l->ceiling, NETWORK_ALLOW);
	collect_ports(l);
}

static void
name_rule(struct proxy_verdict *v, const struct network_rule *rule)
{
	if (rule != NULL)
		network_rule_format(rule, v->rule);
}

static const enum netproxy_reason reasons[] = {
	[NETWORK_ALLOWED] = NETPROXY_LISTED,
	[NETWORK_DENIED] = NETPROXY_DENIED,
	[NETWORK_NOT_LISTED] = NETPROXY_NOT_LISTED,
	[NETWORK_PORT_CLOSED] = NETPROXY_PORT_CLOSED,
	[NETWORK_REVIEWED] = NETPROXY_NOT_LISTED,
};

/* Returns true if the operator's list lets it pass. */
static bool
passes_ceiling(const struct proxy_list *l, const struct host_name *host,
    uint16_t port, enum network_way way, struct proxy_verdict *v)
{
	const struct network_rule *rule;
	enum network_answer answer =
	    network_rules_judge(&l->ceiling, host, port, way, &rule);

	if (answer == NETWORK_ALLOWED ||
	    (answer == NETWORK_NOT_LISTED && !l->has_ceiling))
		return true;
	v->source = NETPROXY_BY_OPERATOR;
	v->reason = reasons[answer];
	name_rule(v, rule);
	return false;
}

void
proxy_list_judge(const struct proxy_list *l, const struct host_name *host,
    uint16_t port, enum network_way way, struct proxy_verdict *v)
{
	const struct network_rule *rule;
	enum network_answer answer;

	*v = (struct proxy_verdict){ .source = NETPROXY_BY_LIST,
		.reason = NETPROXY_BAD_LIST };
	if (l->bad || !passes_ceiling(l, host, port, way, v))
		return;
	answer = network_rules_judge(&l->client, host, port, way, &rule);
	v->reason = reasons[answer];
	name_rule(v, rule);
	v->allowed = answer == NETWORK_ALLOWED;
	v->ask = l->asks &&
		 (answer == NETWORK_NOT_LISTED || answer == NETWORK_REVIEWED);
}

size_t
proxy_list_ports(const struct proxy_list *l, const struct host_name *host,
    uint16_t ports[NETPROXY_PORTS_MAX], struct proxy_verdict *v)
{
	size_t n = 0;

	for (size_t i = l->nports; i-- > 0;) {
		proxy_list_judge(l, host, l->ports[i], NETWORK_TUNNEL, v);
		if (v->allowed || v->ask)
			ports[n++] = l->ports[i];
	}
	return n;
}

/* Returns true if this side permits the address. `any`: it has no list, only
 * denials. */
static bool
permits(const struct network_rules *r, bool any, const struct host_name *host,
    uint16_t port, const struct in6_addr *address, struct proxy_verdict *v)
{
	const struct network_rule *denial =
	    network_rules_denial(r, address, port);

	v->reason = NETPROXY_PRIVATE;
	if (denial == NULL)
		return any || network_rules_permit(r, host, address);
	v->reason = NETPROXY_DENIED;
	name_rule(v, denial);
	return false;
}

bool
proxy_list_permit(const struct proxy_list *l, const struct host_name *host,
    uint16_t port, const struct in6_addr *address, struct proxy_verdict *v)
{
	struct proxy_verdict refused = *v;
	bool permitted = permits(
	    &l->ceiling, !l->has_ceiling, host, port, address, &refused);

	refused.source = permitted ? NETPROXY_BY_LIST : NETPROXY_BY_OPERATOR;
	permitted = permitted &&
		    permits(&l->client, false, host, port, address, &refused);
	if (!permitted)
		*v = refused;
	return permitted;
}
