/* SPDX-License-Identifier: ISC */
/*
 * HTTP/1.1 on the WebSocket listener (doc/protocol.md sections 1.2 and 1.5):
 * one request head, one reply. Pure: reads and writes memory only.
 */
#pragma once

#include "buf.h"
#include "util.h"

#define HTTP_HEAD_MAX (16u << 10) /* most bytes of request line and headers */

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_OTHER };

/* What is checked of a request. Slices point into the input. */
struct http_request {
	enum http_method method;
	struct slice path;	 /* without the query */
	int minor;		 /* HTTP/1.minor */
	bool origin;		 /* has an Origin header, with any value */
	bool connection_upgrade; /* Connection has the token "upgrade" */
	bool upgrade_websocket;
	bool version_13;
	bool has_host;
	bool has_key;
	struct slice key; /* Sec-WebSocket-Key */
	bool has_authorization;
	struct slice authorization;
	bool has_body; /* its headers announce a body */
};

/* Parses a request head. Returns its length, 0 if it is not complete, -EBADMSG
 * if it is no HTTP request, or -E2BIG if it exceeds HTTP_HEAD_MAX. */
ssize_t http_parse(struct http_request *r, const char *data, size_t len);

/* Values for http_reply.headers of replies with a body. */
/* Version 0.0.4 of the text format of Prometheus. */
#define HTTP_TEXT_METRICS                                                      \
	"content-type: text/plain; version=0.0.4; charset=utf-8\r\n"
#define HTTP_TEXT_PLAIN "content-type: text/plain; charset=utf-8\r\n"

struct http_reply {
	int status;	  /* 101: continue with authentication */
	const char *body; /* static; "": none */
	/* static additional lines, each with CRLF; or "" */
	const char *headers;
};

/* Makes the checks of section 1.2, in its order, and returns the reply. */
struct http_reply http_check(const struct http_request *r);

/* Writes a complete reply, without the body for HEAD. Every reply contains
 * "connection: close" and a content-length. */
void http_write_reply(struct buf *b, const struct http_reply *reply, bool head);

/* Writes the 101 reply for this Sec-WebSocket-Key. */
void http_write_upgrade(struct buf *b, struct slice key);

/* Finds the bearer token in the value of an Authorization header (section 1.5).
 * Returns 0 and *token, or -EBADMSG ("invalid authorization header"). */
int http_bearer(struct slice authorization, struct slice *token);
