/* SPDX-License-Identifier: ISC */
/*
 * A ClientHello that continues in a second record is read as far as the first
 * one goes: what is cut off shows no name.
 */
#include "tls_hello.h"

#include "buf.h"

#define RECORD_HANDSHAKE      22
#define RECORD_HEADER_BYTES   5
#define HANDSHAKE_CLIENT      1
#define EXTENSION_SERVER_NAME 0
#define NAME_IS_HOST	      0
#define RANDOM_BYTES	      32

static unsigned
get_u16(struct buf_reader *r)
{
	unsigned high = buf_get_u8(r);

	return high << 8 | buf_get_u8(r);
}

/* Passes over n bytes; beyond the end the reader has failed. */
static const uint8_t *
skip(struct buf_reader *r, size_t n)
{
	const uint8_t *at = r->p;

	if (r->failed || n > r->left) {
		r->failed = true;
		r->left = 0;
		return at;
	}
	r->p += n;
	r->left -= n;
	return at;
}

/* The fields before the extensions. */
static void
skip_to_extensions(struct buf_reader *r)
{
	skip(r, 3); /* the length of the handshake message */
	skip(r, 2 + RANDOM_BYTES);
	skip(r, buf_get_u8(r)); /* session id */
	skip(r, get_u16(r));	/* cipher suites */
	skip(r, buf_get_u8(r)); /* compression methods */
	get_u16(r);		/* the length of the extensions */
}

static enum tls_hello
read_server_name(struct buf_reader *r, struct slice *name)
{
	unsigned type;

	get_u16(r); /* the length of the list; it has one entry */
	type = buf_get_u8(r);
	name->len = get_u16(r);
	name->ptr = (const char *)skip(r, name->len);
	return r->failed || type != NAME_IS_HOST ? TLS_HELLO_NO_NAME
						 : TLS_HELLO_NAME;
}

static enum tls_hello
find_server_name(struct buf_reader *r, struct slice *name)
{
	while (!r->failed && r->left > 0) {
		unsigned type = get_u16(r);
		size_t len = get_u16(r);

		if (!r->failed && type == EXTENSION_SERVER_NAME)
			return read_server_name(r, name);
		skip(r, len);
	}
	return TLS_HELLO_NO_NAME;
}

enum tls_hello
tls_hello_read(const void *data, size_t len, struct slice *name)
{
	const uint8_t *bytes = data;
	struct buf_reader r;
	size_t record;

	if ((len > 0 && bytes[0] != RECORD_HANDSHAKE) ||
	    (len > 1 && bytes[1] != 3))
		return TLS_HELLO_OTHER;
	if (len < RECORD_HEADER_BYTES)
		return TLS_HELLO_PARTIAL;
	record = (size_t)bytes[3] << 8 | bytes[4];
	if (record > TLS_HELLO_MAX - RECORD_HEADER_BYTES || record == 0)
		return TLS_HELLO_OTHER;
	if (len > RECORD_HEADER_BYTES &&
	    bytes[RECORD_HEADER_BYTES] != HANDSHAKE_CLIENT)
		return TLS_HELLO_OTHER;
	if (len < RECORD_HEADER_BYTES + record)
		return TLS_HELLO_PARTIAL;
	buf_reader_init(&r, bytes + RECORD_HEADER_BYTES + 1, record - 1);
	skip_to_extensions(&r);
	return find_server_name(&r, name);
}
