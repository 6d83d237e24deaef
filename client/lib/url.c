/* SPDX-License-Identifier: ISC */
/*
 * Parses the URLs a client connects to. Makes no system calls and looks no
 * names up.
 */
#include "url.h"

#include "base.h"

/* Blanks and control characters could end the HTTP header or its line early. */
static bool
is_clean(const char *url)
{
	for (const unsigned char *p = (const unsigned char *)url; *p; p++)
		if (*p <= ' ' || *p == 0x7f)
			return false;
	return true;
}

static bool
is_port(const char *s, size_t n)
{
	unsigned long port = 0;

	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		port = port * 10 + (unsigned long)(s[i] - '0');
		if (port > 65535)
			return false;
	}
	return n > 0 && port > 0;
}

/* Splits HOST[:PORT]. An IPv6 address is in brackets. Returns NULL, or a
 * constant text that says what is wrong. */
static const char *
take_authority(struct endpoint *e, const char *s, size_t n)
{
	const char *end = s + n, *host = s, *host_end, *colon;

	if (memchr(s, '@', n) != NULL)
		return "a URL must not contain a user or a password; the "
		       "token has its own option";
	if (n > 0 && s[0] == '[') {
		host = s + 1;
		host_end = memchr(s, ']', n);
		if (host_end == NULL)
			return "`[' without `]'";
		colon = host_end + 1;
	} else {
		colon = memchr(s, ':', n);
		host_end = colon ? colon : end;
		colon = host_end;
	}
	if (host_end == host)
		return "the host is missing";
	if (colon != end &&
	    (*colon != ':' || !is_port(colon + 1, (size_t)(end - colon - 1))))
		return "the port is not a number from 1 to 65535";
	e->host = xstrndup(host, (size_t)(host_end - host));
	e->authority = xstrndup(s, n);
	e->port = colon != end
		      ? xstrndup(colon + 1, (size_t)(end - colon - 1))
		      : xstrdup(e->kind == ENDPOINT_WSS ? "443" : "80");
	return NULL;
}

static const char *
parse_websocket(struct endpoint *e, const char *rest)
{
	size_t n = strcspn(rest, "/?#");

	if (!is_clean(rest))
		return "blanks or control characters inside";
	if (strchr(rest, '#') != NULL)
		return "a fragment has no meaning here";
	e->path = xasprintf("%s%s", rest[n] == '/' ? "" : "/", rest + n);
	return take_authority(e, rest, n);
}

static const char *
parse_unix(struct endpoint *e, const char *rest)
{
	if (strncmp(rest, "//", 2) == 0)
		rest += 2;
	if (*rest == '\0')
		return "the path of the socket is missing";
	e->file = xstrdup(rest);
	e->authority = xstrdup("localhost");
	e->path = xstrdup("/");
	return NULL;
}

static const char *
parse_command(struct endpoint *e, const char *rest)
{
	if (rest[strspn(rest, " \t")] == '\0')
		return "the command is missing";
	e->command = xstrdup(rest);
	return NULL;
}

int
endpoint_parse(struct endpoint *e, const char *url, const char **why)
{
	static const struct {
		const char *scheme;
		enum endpoint_kind kind;
		const char *(*parse)(struct endpoint *e, const char *rest);
	} schemes[] = {
		{ "ws://", ENDPOINT_WS, parse_websocket },
		{ "wss://", ENDPOINT_WSS, parse_websocket },
		{ "unix:", ENDPOINT_UNIX, parse_unix },
		{ "stdio:", ENDPOINT_STDIO, parse_command },
		{ "ask:", ENDPOINT_ASK, parse_command },
	};

	*e = (struct endpoint){ 0 };
	*why =
	    strncasecmp(url, "http://", 7) == 0
		? "it does not begin with ws://, which stands here for http://"
	    : strncasecmp(url, "https://", 8) == 0
		? "it does not begin with wss://, which stands here for https://"
	    : url[0] == '/'
		? "a socket's begins with unix:"
		: "it does not begin with ws://, wss://, unix:, stdio: or "
		  "ask:, as in ws://HOST:PORT";
	if (strlen(url) > URL_MAX) {
		*why = "it is longer than 4096 bytes";
		return -EINVAL;
	}
	for (size_t i = 0; i < nitems(schemes); i++) {
		size_t n = strlen(schemes[i].scheme);

		if (strncasecmp(url, schemes[i].scheme, n) != 0)
			continue;
		e->kind = schemes[i].kind;
		*why = schemes[i].parse(e, url + n);
		break;
	}
	return *why == NULL ? 0 : -EINVAL;
}

void
endpoint_clear(struct endpoint *e)
{
	free(e->host);
	free(e->port);
	free(e->authority);
	free(e->path);
	free(e->file);
	free(e->command);
	*e = (struct endpoint){ 0 };
}

bool
endpoint_is_local(const struct endpoint *e)
{
	if (e->kind == ENDPOINT_UNIX || e->kind == ENDPOINT_STDIO ||
	    e->kind == ENDPOINT_ASK)
		return true;
	return strcmp(e->host, "localhost") == 0 ||
	       strcmp(e->host, "::1") == 0 || strncmp(e->host, "127.", 4) == 0;
}
