/* SPDX-License-Identifier: ISC */
/* SOCKS5 without authentication (RFC 1928), the server's side. Pure. */
#pragma once

#include "base.h"

#define SOCKS_VERSION 5

enum socks_reply {
	SOCKS_OK = 0,
	SOCKS_FAILED = 1,
	SOCKS_REFUSED_BY_RULES = 2,
	SOCKS_UNREACHABLE = 4,
	SOCKS_REFUSED = 5,
	SOCKS_BAD_COMMAND = 7,
	SOCKS_BAD_ADDRESS = 8,
};

#define SOCKS_REPLY_BYTES 10

/*
 * Reads the greeting. Returns its length, 0 if it is not complete, or -EBADMSG.
 * *accepted: the client can do without authentication.
 */
ssize_t socks_greeting_parse(const char *data, size_t len, bool *accepted);

struct socks_request {
	bool connect, udp; /* the command; neither: another */
	char host[256];	   /* an address as text, or a name; "": bad kind */
	uint16_t port;
};

/* Reads the request. Returns its length, 0 or -EBADMSG. */
ssize_t socks_request_parse(
    struct socks_request *r, const char *data, size_t len);

/* Writes a reply with the address 0.0.0.0:0. */
void socks_reply_write(uint8_t reply[SOCKS_REPLY_BYTES], enum socks_reply code);
