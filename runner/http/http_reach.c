/* SPDX-License-Identifier: ISC */
#include "http_reach.h"

#include "frame.h"
#include "http_exchange.h"
#include "own_ports.h"

#define EXCEEDS "exceeds what the operator permits"

static bool held;
static struct proxy_list list;
static int own_ports; /* of own_ports_open() */

/*
 * A resolver that tries more names than the one that was judged would reach
 * another host.
 */
static void
look_up_no_other_name(void)
{
	if (setenv("LOCALDOMAIN", "", 1) < 0)
		log_fatal("no memory");
}

static void
take_own_ports(void)
{
	int err = own_ports_take(OWN_PORTS_FD);

	own_ports = err == 0 ? own_ports_open() : err;
	if (own_ports < 0)
		log_fatal_errno(own_ports, "execd's own ports");
	close(OWN_PORTS_FD);
}

void
http_reach_init(void)
{
	const char *rules = getenv(HTTP_RULES);

	take_own_ports();
	held = rules != NULL;
	if (!held)
		return;
	proxy_list_read(&list, (struct slice){ rules, strlen(rules) });
	unsetenv(HTTP_RULES);
	look_up_no_other_name();
}

/* Reads where the URL leads. Returns 0 or -EINVAL. */
static int
read_target(struct http_reach *r, CURLU *url)
{
	char *host = NULL, *port = NULL;
	int err = -EINVAL;

	if (curl_url_get(url, CURLUPART_HOST, &host, CURLU_URLDECODE) ==
		CURLUE_OK &&
	    curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) ==
		CURLUE_OK) {
		r->port = host_port_parse((struct slice){ port, strlen(port) });
		err = proxy_host_read(
		    &r->host, (struct slice){ host, strlen(host) });
	}
	curl_free(host);
	curl_free(port);
	return err == 0 && r->port != 0 ? 0 : -EINVAL;
}

/* Tells whether the header asks for this host and this or no port. */
static bool
is_this_host(const struct http_reach *r, const char *value)
{
	struct slice text = { value, strlen(value) }, host, port;
	struct host_name named;

	while (text.len > 0 && (*text.ptr == ' ' || *text.ptr == '\t'))
		text = (struct slice){ text.ptr + 1, text.len - 1 };
	host_port_split(text, &host, &port);
	return proxy_host_read(&named, host) == 0 &&
	       strcmp(named.text, r->host.text) == 0 &&
	       (port.len == 0 || host_port_parse(port) == r->port);
}

/*
 * A server can have many names, and the header Host says which one is asked. A
 * request to a listed host could so ask for one that is not listed.
 * execd-netproxy refuses such a request, too.
 */
static bool
names_other_host(const struct http_reach *r, const struct http_message *m)
{
	for (struct curl_slist *h = m->headers; h != NULL; h = h->next)
		if (strncasecmp(h->data, "Host", 4) == 0 &&
		    (h->data[4] == ':' || h->data[4] == ';') &&
		    !is_this_host(r, h->data + 5))
			return true;
	return false;
}

/* Tells the runner of a decision, whatever answer is composed now. */
static void
tell(const struct http_reach *r, const struct proxy_verdict *v)
{
	union netproxy_message m = {
		.decided = { .target = { .protocol = NETPROXY_REQUEST,
				 .port = r->port },
		    .allowed = v->allowed,
		    .source = v->source,
		    .reason = v->reason }
	};
	struct channel *ch = r->channel;
	uint32_t tag = ch->tag;
	struct json_writer w;

	memcpy(m.decided.target.host, r->host.text, sizeof(r->host.text));
	memcpy(m.decided.rule, v->rule, sizeof(v->rule));
	ch->tag = FRAME_DECIDED;
	w = channel_begin(ch);
	netproxy_put(w.buf, NETPROXY_DECIDED, &m);
	channel_send(ch);
	ch->tag = tag;
}

/* Tells which key decided, and by which rule. */
static void
explain(const struct http_reach *r, const struct proxy_verdict *v, char *error)
{
	if (v->reason == NETPROXY_OWN_PORT)
		snprintf(error, ARGS_ERROR_MAX,
		    "%s:%u leads to a port of execd itself", r->host.text,
		    r->port);
	else
		snprintf(error, ARGS_ERROR_MAX,
		    "%s:%u " EXCEEDS ": %s (limited by %s%s%s)", r->host.text,
		    r->port, netproxy_reason_name(v->reason),
		    v->reason == NETPROXY_DENIED ? "network-deny"
						 : "network-allow",
		    v->rule[0] != '\0' ? ", rule " : "", v->rule);
}

int
http_reach_judge(struct http_reach *r, struct channel *channel,
    const struct http_message *m, char *error)
{
	struct proxy_verdict v;

	*r = (struct http_reach){ .channel = channel };
	if (read_target(r, m->url) < 0 && held) {
		snprintf(error, ARGS_ERROR_MAX,
		    "the URL " EXCEEDS ": it names no valid host");
		return -EACCES;
	}
	if (!held)
		return 0;
	proxy_list_judge(&list, &r->host, r->port, NETWORK_HTTP, &v);
	if (!v.allowed) {
		tell(r, &v);
		explain(r, &v, error);
		return -EACCES;
	}
	if (names_other_host(r, m)) {
		tell(r,
		    &(struct proxy_verdict){ .reason = NETPROXY_OTHER_NAME });
		snprintf(error, ARGS_ERROR_MAX,
		    "%s:%u: its header Host " EXCEEDS
		    ": it names another host (network-allow)",
		    r->host.text, r->port);
		return -EACCES;
	}
	return 0;
}

static struct in6_addr
address_of(const struct curl_sockaddr *a)
{
	struct in6_addr address = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	if (a->family == AF_INET6)
		memcpy(&address,
		    (const char *)&a->addr +
			offsetof(struct sockaddr_in6, sin6_addr),
		    sizeof(address));
	else
		memcpy(&address.s6_addr[12],
		    (const char *)&a->addr +
			offsetof(struct sockaddr_in, sin_addr),
		    4);
	return address;
}

static bool
permit(struct http_reach *r, const struct curl_sockaddr *a)
{
	struct in6_addr address = address_of(a);

	if (own_ports_has(own_ports, &a->addr)) {
		r->refusal =
		    (struct proxy_verdict){ .source = NETPROXY_BY_OPERATOR,
			    .reason = NETPROXY_OWN_PORT };
		return false;
	}
	return !held || proxy_list_permit(
			    &list, &r->host, r->port, &address, &r->refusal);
}

/* CURLOPT_OPENSOCKETFUNCTION: the address is the one that is connected to. */
static curl_socket_t
open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct http_reach *r = arg;

	if ((a->family != AF_INET && a->family != AF_INET6) || !permit(r, a)) {
		r->refused = true;
		return CURL_SOCKET_BAD;
	}
	r->permitted = true;
	return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/*
 * CURLOPT_PREREQFUNCTION: the request is sent now, on a connection that is new
 * or was there. A verdict by the list says by which rule.
 */
static int
send_request(void *arg, char *to, char *from, int to_port, int from_port)
{
	const struct http_reach *r = arg;
	struct proxy_verdict v;

	proxy_list_judge(&list, &r->host, r->port, NETWORK_HTTP, &v);
	tell(r, &v);
	return CURL_PREREQFUNC_OK;
}

/* A proxy of the environment would resolve the name itself. */
void
http_reach_watch(struct http_reach *r, CURL *easy)
{
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, r);
	if (!held)
		return;
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, send_request);
	curl_easy_setopt(easy, CURLOPT_PREREQDATA, r);
}

const char *
http_reach_refused(const struct http_reach *r, char *text)
{
	if (!r->refused || r->permitted)
		return NULL;
	tell(r, &r->refusal);
	explain(r, &r->refusal, text);
	return text;
}
