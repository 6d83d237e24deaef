/* SPDX-License-Identifier: ISC */
/*
 * A host as a request or a list names it: a name, or an address. Each host has
 * one form here, so that two forms of one address cannot be judged differently.
 * Pure: looks nothing up.
 */
#pragma once

#include <netinet/in.h>

#include "base.h"

#define HOST_NAME_BYTES 254 /* 253 of RFC 1035 section 2.3.4, and a NUL */

struct host_name {
	/* lower case, without the dot at the end; an address as
	 * inet_ntop(3) writes it, without brackets */
	char text[HOST_NAME_BYTES];
	bool is_address;
	struct in6_addr address; /* of IPv4: the mapped form */
};

/*
 * Reads a host. An IPv6 address may stand in brackets. Returns 0, -EINVAL if it
 * is no host, or -EILSEQ if it is not ASCII, and must be converted first (IDNA,
 * RFC 5891). Forms of an IPv4 address that only some programs know are no
 * hosts: 127.1, 0x7f000001, 2130706433, 010.0.0.1; nor are addresses with a
 * zone.
 */
int host_name_parse(struct host_name *h, struct slice text);

/* Fills in a host that is this address. */
void host_name_of(struct host_name *h, const struct in6_addr *address);

/* Returns the number of a port, 1 to 65535, or 0 if the text is none. */
uint16_t host_port_parse(struct slice text);

/*
 * Splits "HOST:PORT", and "[ADDRESS]:PORT". Without a port *port is empty.
 * Several colons without brackets belong to an address.
 */
void host_port_split(struct slice text, struct slice *host, struct slice *port);

/*
 * Tells whether an address belongs to the public internet. Returns false for
 * addresses of this host, its link, private networks, and those that stand for
 * such an address: loopback, unspecified, link-local (also 169.254.169.254,
 * which serves metadata of virtual machines), RFC 1918, RFC 6598, unique local,
 * multicast, broadcast, reserved; mapped, compatible, translated (RFC 6052,
 * 6to4, Teredo) forms are judged by the address inside. IPv4 is given in its
 * mapped form.
 */
bool address_is_public(const struct in6_addr *address);

/*
 * Tells whether an address stands for one of IPv4, as above, and fills that in,
 * in its mapped form.
 */
bool address_inside(const struct in6_addr *address, struct in6_addr *inside);

bool address_is_loopback(const struct in6_addr *address);
