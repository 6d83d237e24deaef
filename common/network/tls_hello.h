/* SPDX-License-Identifier: ISC */
/*
 * The server's name in the first record of a TLS connection (RFC 8446 section
 * 4.1.2, RFC 6066 section 3). Pure; nothing is decrypted.
 */
#pragma once

#include "util.h"

/* A record has at most this many bytes (RFC 8446 section 5.1). */
#define TLS_HELLO_MAX (5 + (16u << 10))

enum tls_hello {
	TLS_HELLO_OTHER,   /* the bytes do not begin a ClientHello */
	TLS_HELLO_PARTIAL, /* more bytes of the first record are needed */
	TLS_HELLO_NO_NAME, /* the first record shows no name */
	TLS_HELLO_NAME,	   /* *name, in the bytes */
};

enum tls_hello tls_hello_read(const void *data, size_t len, struct slice *name);
