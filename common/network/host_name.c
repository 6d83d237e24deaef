/* SPDX-License-Identifier: ISC */
/*
 * Hosts as requests and lists name them, and the kinds of addresses.
 */
#include "host_name.h"

#include <arpa/inet.h>

#define LABEL_MAX 63 /* RFC 1035 section 2.3.4 */

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Underscores are no letters of host names, but resolvers know such names. */
static bool
is_name_char(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
}

static char
to_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

void
host_name_of(struct host_name *h, const struct in6_addr *address)
{
	*h = (struct host_name){ .is_address = true };
	h->address = *address;
	if (IN6_IS_ADDR_V4MAPPED(address))
		inet_ntop(
		    AF_INET, &address->s6_addr[12], h->text, sizeof(h->text));
	else
		inet_ntop(AF_INET6, address, h->text, sizeof(h->text));
}

static bool
parse_address4(struct host_name *h, const char *text)
{
	struct in6_addr mapped = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, text, &mapped.s6_addr[12]) != 1)
		return false;
	host_name_of(h, &mapped);
	return true;
}

static bool
parse_address6(struct host_name *h, const char *text)
{
	struct in6_addr address;

	if (inet_pton(AF_INET6, text, &address) != 1)
		return false;
	host_name_of(h, &address);
	return true;
}

/*
 * A name whose last label is a number would be an address for inet_aton(3):
 * "127.1" or "0x7f.1".
 */
static bool
ends_in_number(const char *name)
{
	const char *dot = strrchr(name, '.');
	const char *last = dot != NULL ? dot + 1 : name;

	if (last[0] == '0' && last[1] == 'x')
		return last[2 + strspn(last + 2, "0123456789abcdef")] == '\0';
	return last[strspn(last, "0123456789")] == '\0';
}

static bool
is_name(const char *name)
{
	size_t label = 0;

	for (const char *c = name; *c != '\0'; c++) {
		if (*c == '.' && label == 0)
			return false;
		label = *c == '.' ? 0 : label + 1;
		if (label > LABEL_MAX || (*c != '.' && !is_name_char(*c)))
			return false;
	}
	return label > 0 && !ends_in_number(name);
}

/* Returns the text within brackets, or -EINVAL for one bracket alone. */
static int
remove_brackets(struct slice *text, bool *brackets)
{
	*brackets = text->len > 0 && text->ptr[0] == '[';
	if (!*brackets)
		return 0;
	if (text->len < 2 || text->ptr[text->len - 1] != ']')
		return -EINVAL;
	*text = (struct slice){ text->ptr + 1, text->len - 2 };
	return 0;
}

int
host_name_parse(struct host_name *h, struct slice text)
{
	bool brackets;

	*h = (struct host_name){ 0 };
	if (remove_brackets(&text, &brackets) < 0)
		return -EINVAL;
	if (text.len > 0 && text.ptr[text.len - 1] == '.' && !brackets)
		text.len--;
	if (text.len == 0 || text.len >= sizeof(h->text))
		return -EINVAL;
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] & 0x80)
			return -EILSEQ;
		h->text[i] = to_lower(text.ptr[i]);
		if (h->text[i] == '\0')
			return -EINVAL;
	}
	if (brackets || strchr(h->text, ':') != NULL)
		return parse_address6(h, h->text) ? 0 : -EINVAL;
	return parse_address4(h, h->text) || is_name(h->text) ? 0 : -EINVAL;
}

uint16_t
host_port_parse(struct slice text)
{
	unsigned port = 0;

	if (text.len == 0 || text.len > 5)
		return 0;
	for (size_t i = 0; i < text.len; i++) {
		if (!is_digit(text.ptr[i]))
			return 0;
		port = port * 10 + (unsigned)(text.ptr[i] - '0');
	}
	return port <= UINT16_MAX ? (uint16_t)port : 0;
}

void
host_port_split(struct slice text, struct slice *host, struct slice *port)
{
	const char *last =
	    text.len > 0 ? memrchr(text.ptr, ':', text.len) : NULL;
	size_t before = last != NULL ? (size_t)(last - text.ptr) : 0;

	*host = text;
	*port = (struct slice){ text.ptr, 0 };
	if (before == 0)
		return;
	if (text.ptr[0] == '[' ? text.ptr[before - 1] != ']'
			       : memchr(text.ptr, ':', before) != NULL)
		return;
	host->len = before;
	*port = (struct slice){ last + 1, text.len - before - 1 };
}

/* --- addresses ---------------------------------------------------------- */

/* The registries of special addresses are RFC 6890 and IANA's lists "IPv4
 * Special-Purpose Address Registry" and "IPv6 Special-Purpose Address
 * Registry". Ranges for documentation are left out: nothing of this host can
 * have one. */

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
is_public4(const uint8_t bytes[4])
{
	uint32_t address = 0;

	for (int i = 0; i < 4; i++)
		address = address << 8 | bytes[i];
	for (size_t i = 0; i < nitems(not_public4); i++) {
		uint32_t mask = UINT32_MAX << (32 - not_public4[i].bits);

		if ((address & mask) == not_public4[i].from)
			return false;
	}
	return true;
}

bool
address_inside(const struct in6_addr *address, struct in6_addr *inside)
{
	const struct carrier *c = carriers;

	while (c < carriers + nitems(carriers) &&
	       !starts_with(address->s6_addr, c->from, c->bits))
		c++;
	if (c == carriers + nitems(carriers))
		return false;
	*inside = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
	for (int i = 0; i < 4; i++)
		inside->s6_addr[12 + i] = address->s6_addr[c->at + i] ^ c->flip;
	return true;
}

bool
address_is_public(const struct in6_addr *address)
{
	const uint8_t *bytes = address->s6_addr;
	struct in6_addr inside;

	if (address_inside(address, &inside))
		return is_public4(&inside.s6_addr[12]);
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
