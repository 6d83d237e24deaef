/* SPDX-License-Identifier: ISC */
/*
 * What a proxy reads and writes of HTTP/1.1 (RFC 9110, RFC 9112). Each
 * connection carries one request, and says so to both sides: nothing behind it
 * is read as a second request, so there is nothing to smuggle. Of a
 * body nothing is read but the lines between its chunks. Pure.
 */
#pragma once

#include "buf.h"
#include "host_name.h"

#define PROXY_HEAD_MAX (64u << 10) /* bytes of a head, of both sides */

struct proxy_request {
	struct slice method, target; /* in the head */
	bool connect;
	struct slice host; /* as written; to be normalised */
	uint16_t port;
	struct slice path; /* of a request that is no CONNECT */
	bool any_name;	   /* the host is an address, Host may be its name */
	bool upgrade;	   /* wants to speak WebSocket, and nothing else */
	bool chunked;	   /* only the body says where it ends */
	uint64_t length;   /* of a body that is not chunked */
	struct slice head; /* request line and headers */
};

/* What a tunnel to this port carries is read as well. */
#define PROXY_HTTP_PORT 80

/*
 * Reads a request head, which came in a tunnel to port 80 of this host, or in
 * none: NULL. Returns its length, 0 if it is not complete, -E2BIG, or -EBADMSG
 * with *why, a static text for the client.
 */
ssize_t proxy_request_parse(struct proxy_request *r,
    const struct host_name *tunnel, const char *data, size_t len,
    const char **why);

/* Writes the head for the server: origin form, this connection's end. */
void proxy_request_write(struct buf *b, const struct proxy_request *r);

/* How far the chunks of a body were read (RFC 9112 section 7.1). */
enum proxy_chunk_state {
	CHUNK_SIZE,
	CHUNK_EXTENSION,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_TRAILER, /* at the beginning of a line */
	CHUNK_TRAILER_LINE,
	CHUNK_TRAILER_LF,
	CHUNK_LAST_LF,
	CHUNK_DONE,
};

struct proxy_chunks {
	enum proxy_chunk_state state;
	unsigned digits; /* of a size */
	size_t line;	 /* bytes of lines that are no data */
	uint64_t left;	 /* of the data of this chunk */
};

/*
 * Reads more of a chunked body. Returns how many of the bytes belong to it,
 * which is all of them until s->state is CHUNK_DONE; or -EBADMSG for what two
 * servers could read in two ways: a line that ends without CR, a size that is
 * no number, or lines of more than PROXY_HEAD_MAX bytes.
 */
ssize_t proxy_chunks_read(
    struct proxy_chunks *s, const uint8_t *data, size_t len);

struct proxy_response {
	unsigned status;
	bool no_body;	 /* by its status */
	bool has_length; /* of the body, in content-length */
	uint64_t length;
};

/*
 * Reads a response head, and writes it for the client: the same, but that the
 * connection ends with it. Returns its length, 0, -E2BIG or -EBADMSG.
 */
ssize_t proxy_response_convert(
    struct buf *b, struct proxy_response *r, const char *data, size_t len);
