/* SPDX-License-Identifier: ISC */
/*
 * The form is the reference's, with the rule beside it: programs that know it
 * find what they look for. Hosts and rules have only characters that need no
 * escapes in JSON.
 */
#include "proxy_reply.h"

static const struct {
	const char *error; /* the header x-proxy-error */
	const char *text;
} reasons[NETPROXY_REASONS] = {
	[NETPROXY_LISTED] = { "", "" },
	[NETPROXY_DENIED] = { "blocked-by-denylist",
	    "Domain denied by the sandbox policy." },
	[NETPROXY_NOT_LISTED] = { "blocked-by-allowlist",
	    "Domain not in allowlist." },
	[NETPROXY_PORT_CLOSED] = { "blocked-by-allowlist",
	    "The allowlist has this host for other ports: those of HOST:PORT, "
	    "or 80 and 443 where the operator names none." },
	[NETPROXY_PRIVATE] = { "blocked-by-allowlist",
	    "Sandbox policy blocks local/private network addresses." },
	[NETPROXY_BAD_METHOD] = { "blocked-by-method-policy",
	    "Method not allowed in limited mode." },
	[NETPROXY_NO_TUNNELS] = { "blocked-by-mitm-required",
	    "Limited mode has no tunnels, no other protocols and no bodies "
	    "without a length: they cannot be limited to methods." },
	[NETPROXY_OTHER_NAME] = { "blocked-by-policy",
	    "TLS asks for another name than the tunnel." },
	[NETPROXY_NO_UDP] = { "blocked-by-policy",
	    "SOCKS5 carries TCP only here." },
	[NETPROXY_TOO_MANY] = { "blocked-by-limit",
	    "Too many connections at once (network-max-connections)." },
	[NETPROXY_TOO_MUCH] = { "blocked-by-limit",
	    "Too many bytes of one command (network-max-bytes)." },
	[NETPROXY_OWN_PORT] = { "blocked-by-policy",
	    "This is a port of execd itself, which no command reaches." },
	[NETPROXY_BAD_LIST] = { "blocked-by-policy",
	    "A pattern of the list of hosts cannot be read." },
};

/* Writes a whole reply; the connection ends with it. */
static void
put_reply(struct buf *b, int status, const char *headers, const char *type,
    const struct buf *body)
{
	buf_printf(b,
	    "HTTP/1.1 %d %s\r\ncontent-type: %s\r\n%scontent-length: %zu\r\n"
	    "connection: close\r\n\r\n",
	    status,
	    status == 400   ? "Bad Request"
	    : status == 403 ? "Forbidden"
	    : status == 503 ? "Service Unavailable"
	    : status == 504 ? "Gateway Timeout"
			    : "Bad Gateway",
	    type, headers, body->len);
	buf_put(b, body->data, body->len);
}

/* Programs show the text of a refused CONNECT at most, if anything. */
static void
put_text(struct buf *body, const struct netproxy_decided *d)
{
	buf_printf(body, "%s:%u: %s", d->target.host, d->target.port,
	    reasons[d->reason].text);
	if (d->rule[0] != '\0')
		buf_printf(body, " Rule: %s", d->rule);
	buf_puts(body, "\n");
}

static void
put_json(struct buf *body, const struct netproxy_decided *d)
{
	buf_printf(body,
	    "{\"status\":\"blocked\",\"host\":\"%s\",\"reason\":\"%s\","
	    "\"decision\":\"deny\",\"source\":\"%s\",\"protocol\":\"%s\","
	    "\"port\":%u,\"rule\":",
	    d->target.host, netproxy_reason_name(d->reason),
	    netproxy_source_name(d->source),
	    netproxy_protocol_name(d->target.protocol), d->target.port);
	if (d->rule[0] != '\0')
		buf_printf(body, "\"%s\"", d->rule);
	else
		buf_puts(body, "null");
	buf_printf(body, ",\"message\":\"%s\"}", reasons[d->reason].text);
}

void
proxy_reply_denied(struct buf *b, const struct netproxy_decided *d)
{
	bool text = d->target.protocol != NETPROXY_HTTP;
	struct buf body;
	char header[64];

	snprintf(header, sizeof(header), "x-proxy-error: %s\r\n",
	    reasons[d->reason].error);
	buf_init(&body, 4096);
	if (text)
		put_text(&body, d);
	else
		put_json(&body, d);
	put_reply(b, d->source == NETPROXY_BY_LIMIT ? 503 : 403, header,
	    text ? "text/plain" : "application/json", &body);
	buf_clear(&body);
}

void
proxy_reply_failed(struct buf *b, int status, const char *host, const char *why)
{
	struct buf body;

	buf_init(&body, 4096);
	if (host[0] != '\0')
		buf_printf(&body, "%s: ", host);
	buf_printf(&body, "%s\n", why);
	put_reply(b, status, "", "text/plain", &body);
	buf_clear(&body);
}
