/* SPDX-License-Identifier: ISC */
/*
 * The HTTP/1.1 surface of the WebSocket listener (doc/protocol.md sections 1.2
 * and 1.5): one request head, one answer. Pure: bytes in, bytes out.
 */
#ifndef HTTP_H
#define HTTP_H

#include "buf.h"
#include "util.h"

#define HTTP_HEAD_MAX (16u << 10) /* bytes of request line and headers */

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_OTHER };

/* What the checks need of a request; slices point into the input. */
struct http_request {
	enum http_method method;
	struct slice path;	 /* without the query */
	int minor;		 /* HTTP/1.minor */
	bool origin;		 /* an Origin header, whatever its value */
	bool connection_upgrade; /* Connection has the token "upgrade" */
	bool upgrade_websocket;
	bool version_13;
	bool has_host;
	bool has_key;
	struct slice key; /* Sec-WebSocket-Key */
	bool has_authorization;
	struct slice authorization;
	bool has_body; /* announced by the headers */
};

/* Bytes of the request head when it is complete, 0 when more is needed,
 * -EBADMSG when it is no HTTP request, -E2BIG beyond HTTP_HEAD_MAX. */
ssize_t http_parse(struct http_request *r, const char *data, size_t len);

/* For http_reply.headers, of every reply with a body. */
/* Version 0.0.4 of Prometheus' text format. */
#define HTTP_TEXT_METRICS                                                      \
	"content-type: text/plain; version=0.0.4; charset=utf-8\r\n"
#define HTTP_TEXT_PLAIN "content-type: text/plain; charset=utf-8\r\n"

struct http_reply {
	int status;	     /* 101: go on with authentication */
	const char *body;    /* static, "" for none */
	const char *headers; /* static extra lines, each with CRLF, or "" */
};

/* The checks of section 1.2, in its order. */
struct http_reply http_check(const struct http_request *r);

/* A complete reply; the body is left out for HEAD. Always says
 * "connection: close" and a content-length. */
void http_write_reply(struct buf *b, const struct http_reply *reply, bool head);

/* The 101 reply for this key. */
void http_write_upgrade(struct buf *b, struct slice key);

/* The bearer token of an Authorization value (section 1.5): 0 and *token, or
 * -EBADMSG ("invalid authorization header"). */
int http_bearer(struct slice authorization, struct slice *token);

#endif
