/* SPDX-License-Identifier: ISC */
/*
 * The registries of special addresses: RFC 6890 and IANA's lists "IPv4 Special-
 * Purpose Address Registry" and "IPv6 Special-Purpose Address Registry". Ranges
 * for documentation are left out: nothing of this host can have one.
 */
#include "address_class.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util.h"

struct range4 {
	uint32_t from;
	uint8_t bits;
};

static const struct range4 not_public4[] = {
	{ 0x00000000, 8 },  /* this network */
	{ 0x0a000000, 8 },  /* private */
	{ 0x64400000, 10 }, /* shared by carriers */
	{ 0x7f000000, 8 },  /* loopback */
	{ 0xa9fe0000, 16 }, /* link-local, and metadata services */
	{ 0xac100000, 12 }, /* private */
	{ 0xc0000000, 24 }, /* IETF protocol assignments */
	{ 0xc0a80000, 16 }, /* private */
	{ 0xc6120000, 15 }, /* benchmarking */
	{ 0xe0000000, 4 },  /* multicast */
	{ 0xf0000000, 4 },  /* reserved, and broadcast */
};

struct range6 {
	uint8_t from[16];
	uint8_t bits;
};

static const struct range6 not_public6[] = {
	{ { 0x01, 0x00 }, 64 },		    /* discard */
	{ { 0x20, 0x01, 0x00, 0x02 }, 48 }, /* benchmarking */
	{ { 0xfc }, 7 },		    /* unique local */
	{ { 0xfe, 0x80 }, 10 },		    /* link-local */
	{ { 0xfe, 0xc0 }, 10 },		    /* site-local, of RFC 3513 */
	{ { 0xff }, 8 },		    /* multicast */
};

/* Addresses of IPv6 that lead to one of IPv4, which begins at byte `at`. */
static const struct carrier {
	uint8_t from[16];
	uint8_t bits;
	uint8_t at;
	uint8_t flip; /* how its bytes are written */
} carriers[] = {
	/* IPv4-mapped, and translated by SIIT (RFC 2765) */
	{ { [10] = 0xff, [11] = 0xff }, 96, 12, 0 },
	{ { [8] = 0xff, [9] = 0xff }, 96, 12, 0 },
	{ { 0 }, 96, 12, 0 },			   /* compatible, ::, ::1 */
	{ { 0x00, 0x64, 0xff, 0x9b }, 96, 12, 0 }, /* RFC 6052 */
	{ { 0x00, 0x64, 0xff, 0x9b, 0, 1 }, 48, 12, 0 }, /* RFC 8215 */
	{ { 0x20, 0x02 }, 16, 2, 0 },			 /* 6to4 */
	{ { 0x20, 0x01, 0x00, 0x00 }, 32, 12, 0xff },	 /* Teredo's client */
};

static bool
starts_with(const uint8_t *address, const uint8_t *from, unsigned bits)
{
	unsigned whole = bits / 8;
	uint8_t mask = (uint8_t)(0xff00u >> bits % 8);

	return memcmp(address, from, whole) == 0 &&
	       (bits % 8 == 0 || ((address[whole] ^ from[whole]) & mask) == 0);
}

static bool
is_public4(const uint8_t bytes[4], uint8_t flip)
{
	uint32_t address = 0;

	for (int i = 0; i < 4; i++)
		address = address << 8 | (uint8_t)(bytes[i] ^ flip);
	for (size_t i = 0; i < nitems(not_public4); i++) {
		uint32_t mask = UINT32_MAX << (32 - not_public4[i].bits);

		if ((address & mask) == not_public4[i].from)
			return false;
	}
	return true;
}

bool
address_is_public(const struct in6_addr *address)
{
	const uint8_t *bytes = address->s6_addr;

	for (size_t i = 0; i < nitems(carriers); i++)
		if (starts_with(bytes, carriers[i].from, carriers[i].bits))
			return is_public4(
			    bytes + carriers[i].at, carriers[i].flip);
	for (size_t i = 0; i < nitems(not_public6); i++)
		if (starts_with(
			bytes, not_public6[i].from, not_public6[i].bits))
			return false;
	return true;
}

bool
address_is_loopback(const struct in6_addr *address)
{
	if (IN6_IS_ADDR_V4MAPPED(address))
		return address->s6_addr[12] == 127;
	return IN6_IS_ADDR_LOOPBACK(address);
}
