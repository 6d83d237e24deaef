/* SPDX-License-Identifier: ISC */
#include "network.h"

#include "session.h"

/* --- what was denied ---------------------------------------------------- */

static bool
is_same(const struct network_denied *k, const struct netproxy_decided *d)
{
	const char *rule = k->rule != NULL ? k->rule : "";

	return k->port == d->target.port && k->reason == d->reason &&
	       strcmp(k->host, d->target.host) == 0 &&
	       strcmp(rule, d->rule) == 0;
}

static void
keep_denied(struct network *n, const struct netproxy_decided *d)
{
	for (unsigned i = 0; i < n->ndenied; i++)
		if (is_same(&n->denied[i], d))
			return;
	if (n->ndenied == NETWORK_DENIED_MAX) {
		n->more_denied++;
		return;
	}
	n->denied[n->ndenied++] = (struct network_denied){
		.host = xstrdup(d->target.host),
		.port = d->target.port,
		.rule = d->rule[0] != '\0' ? xstrdup(d->rule) : NULL,
		.reason = d->reason,
	};
}

static void
write_rule(struct json_writer *w, const char *rule)
{
	json_key(w, "rule");
	if (rule != NULL && rule[0] != '\0')
		json_cstring(w, rule);
	else
		json_null(w);
}

void
network_write_denied(struct json_writer *w, const struct session_process *p)
{
	const struct network *n = p->network;

	if (n == NULL || n->ndenied == 0)
		return;
	json_key_begin(w, "networkDenied", '[');
	for (unsigned i = 0; i < n->ndenied; i++) {
		const struct network_denied *d = &n->denied[i];

		json_begin(w, '{');
		json_key_cstring(w, "host", d->host);
		json_key_u64(w, "port", d->port);
		write_rule(w, d->rule);
		json_key_cstring(w, "reason", netproxy_reason_name(d->reason));
		json_end(w, '}');
	}
	json_end(w, ']');
	if (n->more_denied > 0)
		json_key_u64(w, "networkDeniedMore", n->more_denied);
}

void
network_free(struct network *n)
{
	if (n == NULL)
		return;
	for (unsigned i = 0; i < n->ndenied; i++) {
		free(n->denied[i].host);
		free(n->denied[i].rule);
	}
	if (n->listener >= 0)
		close(n->listener);
	if (n->resolver >= 0)
		close(n->resolver);
	if (n->redirected >= 0)
		close(n->redirected);
	network_list_clear(&n->list);
	free(n);
}

void
network_put_rules(struct buf *b, const struct network_list *list,
    const struct network_limits *limits)
{
	buf_put(b, list->rules.ptr, list->rules.len);
	network_list_put(b, 'A', limits->allow);
	network_list_put(b, 'D', limits->deny);
}

/* --- decisions ---------------------------------------------------------- */

/* RFC 3339, in UTC. */
static void
write_now(struct json_writer *w)
{
	struct timespec now;
	char text[64], second[32];
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(second, sizeof(second), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(
	    text, sizeof(text), "%s.%03ldZ", second, now.tv_nsec / 1000000);
	json_key_cstring(w, "timestamp", text);
}

/*
 * Clients of the reference know three sources. Another one would be none to
 * them, so the operator's lists and limits are policy there, and `decidedBy`
 * tells more.
 */
static void
write_source(struct json_writer *w, enum netproxy_source source)
{
	bool known = source < NETPROXY_BY_OPERATOR;

	json_key_cstring(w, "source",
	    netproxy_source_name(known ? source : NETPROXY_BY_LIST));
	json_key_cstring(w, "decidedBy", netproxy_decider_name(source));
}

/* Another protocol than the reference's four would be none to its clients. */
void
network_write_protocol(struct json_writer *w, enum netproxy_protocol p)
{
	bool direct = netproxy_is_direct(p);

	json_key_cstring(w, "protocol",
	    netproxy_protocol_name(direct ? NETPROXY_SOCKS5_TCP : p));
	if (direct)
		json_key_cstring(w, "direct", netproxy_protocol_name(p));
}

void
network_write_decided(struct json_writer *w, const struct netproxy_decided *d)
{
	char client[32];

	snprintf(client, sizeof(client), "%s:%u",
	    netproxy_is_direct(d->target.protocol) ? "198.18.0.1" : "127.0.0.1",
	    d->client_port);
	write_now(w);
	json_key_cstring(w, "scope",
	    d->source == NETPROXY_BY_MODE ? "non_domain" : "domain");
	json_key_cstring(w, "decision", d->allowed ? "allow" : "deny");
	write_source(w, d->source);
	json_key_cstring(w, "reason",
	    netproxy_reason_name(d->allowed ? NETPROXY_LISTED : d->reason));
	network_write_protocol(w, d->target.protocol);
	json_key_cstring(w, "host", d->target.host);
	json_key_u64(w, "port", d->target.port);
	if (d->method[0] != '\0')
		json_key_cstring(w, "method", d->method);
	json_key_cstring(w, "client", client);
	json_key_bool(
	    w, "policyOverride", d->allowed && d->source == NETPROXY_BY_CLIENT);
	write_rule(w, d->rule);
}

static void
tell(struct session_process *p, const struct netproxy_decided *d)
{
	const struct process_event e = { .kind = EVENT_DECIDED, .decided = d };

	if (p->orphaned)
		return;
	if (session_is_told(p))
		session_tell(&p->session->client, p, &e);
	watchers_tell(p, &e);
}

/*
 * The reference decides about a host, and then about a mode. Here it is one
 * decision, of which clients are told both. Where the client is asked, the host
 * was not decided about: nobody is asked for what the mode forbids.
 */
static void
tell_of_host(const struct network *n, const struct netproxy_decided *d)
{
	struct netproxy_decided host = *d;

	if (d->source != NETPROXY_BY_MODE || d->reason == NETPROXY_NO_UDP ||
	    n->list.asks)
		return;
	host.allowed = true;
	host.source = NETPROXY_BY_LIST;
	host.reason = NETPROXY_LISTED;
	tell(n->process, &host);
}

void
network_decided(struct network *n, const struct netproxy_decided *d)
{
	audit_network(n->process, d);
	if (!d->allowed)
		keep_denied(n, d);
	tell_of_host(n, d);
	tell(n->process, d);
}
