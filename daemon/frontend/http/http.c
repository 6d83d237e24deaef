/* SPDX-License-Identifier: ISC */
/*
 * Parses HTTP/1.1 requests on the WebSocket listener, in the front-end. The
 * bytes come from untrusted clients, perhaps through a proxy that parses HTTP
 * differently. What two parsers could understand differently is therefore
 * refused (http_text.h), and so are repeated headers that may occur only once.
 */
#include "http.h"

#include "base64.h"
#include "http_text.h"
#include "websocket.h"

#define METHOD_MAX 32 /* longer than any registered method */

static int
on_version(struct http_request *r, struct slice value)
{
	r->version_13 = slice_equal(value, SLICE("13"));
	return 0;
}

static int
on_content_length(struct http_request *r, struct slice value)
{
	for (size_t i = 0; i < value.len; i++) {
		if (value.ptr[i] < '0' || value.ptr[i] > '9')
			return -EBADMSG;
		r->has_body |= value.ptr[i] != '0';
	}
	return value.len > 0 ? 0 : -EBADMSG;
}

/* The headers that are used here. All others must only be well formed. A header
 * with `once` must not be repeated, because a proxy may have used the other
 * one. */
static const struct header {
	struct slice name;
	bool once;
	size_t noted;	    /* the bool that is set */
	struct slice token; /* if the list has it; "": in any case */
	size_t value;	    /* where the value is kept; 0: nowhere */
	int (*on)(struct http_request *r, struct slice value);
} headers[] = {
#define NOTED(member) offsetof(struct http_request, member)
	{ { "origin", 6 }, false, NOTED(origin) },
	{ { "host", 4 }, true, NOTED(has_host) },
	{ { "connection", 10 }, false, NOTED(connection_upgrade),
	    { "upgrade", 7 } },
	{ { "upgrade", 7 }, false, NOTED(upgrade_websocket),
	    { "websocket", 9 } },
	{ { "sec-websocket-version", 21 }, true, .on = on_version },
	{ { "sec-websocket-key", 17 }, true, NOTED(has_key),
	    .value = NOTED(key) },
	{ { "authorization", 13 }, true, NOTED(has_authorization),
	    .value = NOTED(authorization) },
	{ { "content-length", 14 }, true, .on = on_content_length },
	{ { "transfer-encoding", 17 }, true, NOTED(has_body) },
#undef NOTED
};

static int
note_header(struct http_request *r, const struct header *h, struct slice value)
{
	char *at = (char *)r;

	if (h->on != NULL)
		return h->on(r, value);
	if (h->token.len == 0 || http_list_has(value, h->token))
		*(bool *)(at + h->noted) = true;
	if (h->value != 0)
		*(struct slice *)(void *)(at + h->value) = value;
	return 0;
}

/* Takes one header. *seen has a bit for each row of headers[] that was seen
 * before. */
static int
take_header(struct http_request *r, struct slice name, struct slice value,
    unsigned int *seen)
{
	for (size_t i = 0; i < nitems(headers); i++) {
		if (!http_same_word(name, headers[i].name))
			continue;
		if (headers[i].once && (*seen & 1u << i))
			return -EBADMSG;
		*seen |= 1u << i;
		return note_header(r, &headers[i], value);
	}
	return 0;
}

static enum http_method
method_of(struct slice name)
{
	if (slice_equal(name, SLICE("GET")))
		return HTTP_GET;
	if (slice_equal(name, SLICE("HEAD")))
		return HTTP_HEAD;
	return HTTP_OTHER;
}

/* Returns the length of s up to the first of these characters. */
static size_t
length_before(struct slice s, const char *stop)
{
	size_t n = 0;

	while (n < s.len && strchr(stop, s.ptr[n]) == NULL)
		n++;
	return n;
}

/* Returns the path of a request target. For an absolute URI (http://host/path)
 * this is its path. Other forms ("*", host:port) are returned as they are, and
 * match no path that is served. */
static struct slice
path_of(struct slice target)
{
	struct slice rest = target, scheme;

	if (target.ptr[0] == '/') {
		target.len = length_before(target, "?#");
		return target;
	}
	if (!http_split(&rest, ':', &scheme) || !http_is_token(scheme) ||
	    rest.len < 2 || memcmp(rest.ptr, "//", 2) != 0)
		return target;
	rest = http_drop(rest, 2);
	rest = http_drop(rest, length_before(rest, "/?#"));
	if (rest.len == 0 || rest.ptr[0] != '/')
		return SLICE("/");
	rest.len = length_before(rest, "?#");
	return rest;
}

static int
parse_request_line(struct http_request *r, struct slice line)
{
	struct slice method, target;

	if (!http_split(&line, ' ', &method) || method.len > METHOD_MAX ||
	    !http_is_token(method) || !http_split(&line, ' ', &target) ||
	    !http_is_visible_ascii(target))
		return -EBADMSG;
	if (slice_equal(line, SLICE("HTTP/1.1")))
		r->minor = 1;
	else if (!slice_equal(line, SLICE("HTTP/1.0")))
		return -EBADMSG;
	r->method = method_of(method);
	r->path = path_of(target);
	return 0;
}

/* Checks whether an incomplete line can still become a request line. A TLS
 * hello or another protocol is then refused at once and not by timeout. */
static int
check_request_line_start(struct slice line)
{
	struct slice method;
	bool complete = http_split(&line, ' ', &method);

	if (method.len > METHOD_MAX || (complete && method.len == 0))
		return -EBADMSG;
	return method.len == 0 || http_is_token(method) ? 0 : -EBADMSG;
}

static int
parse_headers(struct http_request *r, struct slice rest)
{
	struct slice name, value;
	unsigned int seen = 0;
	int n;

	while ((n = http_next_field(&rest, &name, &value)) > 0) {
		if (take_header(r, name, value, &seen) < 0)
			return -EBADMSG;
	}
	return n;
}

/*
 * The request line is parsed as soon as it is complete, the headers only when
 * all of them are. The work stays small even if the function is called again
 * for every byte.
 */
ssize_t
http_parse(struct http_request *r, const char *data, size_t len)
{
	struct slice rest = { data, len < HTTP_HEAD_MAX ? len : HTTP_HEAD_MAX };
	struct slice line;
	const char *end;
	int n;

	*r = (struct http_request){ 0 };
	end = len ? memmem(data, rest.len, "\r\n\r\n", 4) : NULL;
	n = http_next_line(&rest, &line);
	if (n < 0)
		return n;
	n = n > 0 ? parse_request_line(r, line)
		  : check_request_line_start(line);
	if (n < 0)
		return n;
	if (end == NULL)
		return len < HTTP_HEAD_MAX ? 0 : -E2BIG;
	/* The headers: from after the request line to the CRLF of the last
	 * one. */
	rest.len = (size_t)(end + 2 - rest.ptr);
	n = parse_headers(r, rest);
	return n < 0 ? n : end + 4 - data;
}

/* Blanks inside the token are kept; such a token matches none. The peer also
 * trims tabs, but a tab does not end the scheme. */
int
http_bearer(struct slice authorization, struct slice *token)
{
	struct slice rest = authorization, scheme;

	if (!http_split(&rest, ' ', &scheme) ||
	    !http_same_word(scheme, SLICE("bearer")))
		return -EBADMSG;
	*token = http_trim(rest);
	if (token->len == 0)
		return -EBADMSG;
	for (size_t i = 0; i < token->len; i++)
		if (token->ptr[i] & 0x80)
			return -EBADMSG;
	return 0;
}

/* --- replies ------------------------------------------------------------ */

static struct http_reply
reply_text(int status, const char *body)
{
	return (struct http_reply){ status, body, HTTP_TEXT_PLAIN };
}

static struct http_reply
reply_empty(int status)
{
	return (struct http_reply){ status, "", "" };
}

/* Returns true for 16 bytes in base64 (RFC 6455 section 4.1). */
static bool
is_key(struct slice key)
{
	uint8_t bytes[18];
	char error[BASE64_ERROR_MAX];

	return key.len == base64_encoded_len(16) &&
	       base64_decode(bytes, key.ptr, key.len, error) == 16;
}

/* Checks that `GET /` is a WebSocket handshake. */
static struct http_reply
check_upgrade(const struct http_request *r)
{
	if (!r->connection_upgrade)
		return reply_text(
		    400, "Connection header did not include 'upgrade'");
	if (!r->upgrade_websocket)
		return reply_text(
		    400, "`Upgrade` header did not include 'websocket'");
	if (!r->version_13)
		return reply_text(
		    400, "`Sec-WebSocket-Version` header did not include '13'");
	if (!r->has_key)
		return reply_text(400, "`Sec-WebSocket-Key` header missing");
	if (!is_key(r->key))
		return reply_text(400,
		    "`Sec-WebSocket-Key` header is not 16 bytes in base64");
	if (r->minor == 0)
		return reply_text(426,
		    "WebSocket request couldn't be upgraded since no upgrade "
		    "state was present");
	/* A body would be taken for frames. */
	if (r->has_body)
		return reply_empty(400);
	return reply_empty(101);
}

struct http_reply
http_check(const struct http_request *r)
{
	if (r->origin)
		return reply_empty(403);
	/* RFC 9112 section 3.2. */
	if (r->minor == 1 && !r->has_host)
		return reply_text(400, "`Host` header missing");
	if (slice_equal(r->path, SLICE("/readyz"))) {
		if (r->method == HTTP_OTHER)
			return (struct http_reply){ 405, "",
				"allow: GET,HEAD\r\n" };
		return reply_empty(200);
	}
	if (!slice_equal(r->path, SLICE("/")))
		return reply_empty(404);
	if (r->method != HTTP_GET)
		return reply_text(405, "Request method must be `GET`");
	return check_upgrade(r);
}

static const char *
reason_of(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
		{ 200, "OK" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 408, "Request Timeout" },
		{ 426, "Upgrade Required" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 503, "Service Unavailable" },
	};

	for (size_t i = 0; i < nitems(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}

void
http_write_reply(struct buf *b, const struct http_reply *reply, bool head)
{
	buf_printf(
	    b, "HTTP/1.1 %d %s\r\n", reply->status, reason_of(reply->status));
	buf_puts(b, reply->headers);
	buf_printf(b, "connection: close\r\ncontent-length: %zu\r\n\r\n",
	    strlen(reply->body));
	if (!head)
		buf_puts(b, reply->body);
}

void
http_write_upgrade(struct buf *b, struct slice key)
{
	char accept[WEBSOCKET_ACCEPT_LEN + 1];

	websocket_accept(key.ptr, key.len, accept);
	buf_printf(b,
	    "HTTP/1.1 101 Switching Protocols\r\n"
	    "connection: upgrade\r\n"
	    "upgrade: websocket\r\n"
	    "sec-websocket-accept: %s\r\n\r\n",
	    accept);
}
