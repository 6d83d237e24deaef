/* SPDX-License-Identifier: ISC */
/*
 * The header of the PROXY protocol, version 2.
 */
#include "proxy_header.h"

#include <errno.h>
#include <string.h>

#define FIXED_BYTES	16 /* signature, version and command, family, length */
#define SIGNATURE_BYTES 12
#define INET_BYTES	12 /* two addresses, two ports */
#define INET6_BYTES	36

enum command { COMMAND_LOCAL, COMMAND_PROXY };

/* Family and transport. */
enum carries { CARRIES_TCP4 = 0x11, CARRIES_TCP6 = 0x21 };

static const uint8_t signature[SIGNATURE_BYTES] = { '\r', '\n', '\r', '\n',
	'\0', '\r', '\n', 'Q', 'U', 'I', 'T', '\n' };

static const char *
check_command(uint8_t version_and_command)
{
	if (version_and_command >> 4 != 2)
		return "its version is not 2";
	if ((version_and_command & 15) > COMMAND_PROXY)
		return "its command is neither LOCAL nor PROXY";
	return NULL;
}

/* LOCAL says nothing about addresses, whatever its family is. */
static const char *
check_family(const uint8_t *p, size_t length)
{
	if ((p[12] & 15) == COMMAND_LOCAL)
		return NULL;
	if (p[13] != CARRIES_TCP4 && p[13] != CARRIES_TCP6)
		return "its client has no address of TCP over IPv4 or IPv6";
	if (length < (p[13] == CARRIES_TCP4 ? INET_BYTES : INET6_BYTES))
		return "it is too short for its addresses";
	return NULL;
}

/* Returns what is wrong with the part that has come, as early as possible. */
static const char *
check(const uint8_t *p, size_t n)
{
	size_t length = n >= FIXED_BYTES ? (size_t)p[14] << 8 | p[15] : 0;
	const char *why = NULL;

	if (memcmp(p, signature, n < SIGNATURE_BYTES ? n : SIGNATURE_BYTES) !=
	    0)
		return "not a PROXY v2 header";
	if (n > SIGNATURE_BYTES)
		why = check_command(p[12]);
	if (why == NULL && length > PROXY_HEADER_MAX - FIXED_BYTES)
		why = "it is longer than 536 bytes";
	if (why == NULL && n >= FIXED_BYTES)
		why = check_family(p, length);
	return why;
}

static void
take_address(const uint8_t *p, struct proxy_header *h)
{
	const uint8_t *at = p + FIXED_BYTES;

	if (p[13] == CARRIES_TCP4) {
		h->from.in.sin_family = AF_INET;
		memcpy(&h->from.in.sin_addr, at, 4);
		memcpy(&h->from.in.sin_port, at + 8, 2);
	} else {
		h->from.in6.sin6_family = AF_INET6;
		memcpy(&h->from.in6.sin6_addr, at, 16);
		memcpy(&h->from.in6.sin6_port, at + 32, 2);
	}
}

int
proxy_header_parse(
    const uint8_t *p, size_t n, struct proxy_header *h, const char **why)
{
	size_t whole;

	*why = check(p, n);
	if (*why != NULL)
		return -EBADMSG;
	if (n < FIXED_BYTES)
		return (int)(FIXED_BYTES - n);
	whole = FIXED_BYTES + ((size_t)p[14] << 8 | p[15]);
	if (n < whole)
		return (int)(whole - n);
	memset(h, 0, sizeof(*h));
	h->local = (p[12] & 15) == COMMAND_LOCAL;
	if (!h->local)
		take_address(p, h);
	return 0;
}
