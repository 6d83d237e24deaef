/* SPDX-License-Identifier: ISC */
/*
 * Checks a request head and writes replies, in the front-end. The order of the
 * checks and the texts are those of the reference server.
 */
#include "http.h"

#include <string.h>

#include "base64.h"
#include "websocket.h"

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
