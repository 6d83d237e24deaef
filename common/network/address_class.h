/* SPDX-License-Identifier: ISC */
/* Which addresses belong to the public internet. Pure. */
#ifndef ADDRESS_CLASS_H
#define ADDRESS_CLASS_H

#include <netinet/in.h>
#include <stdbool.h>

/*
 * Returns false for addresses of this host, its link, private networks, and
 * those that stand for such an address: loopback, unspecified, link-local (also
 * 169.254.169.254, which serves metadata of virtual machines), RFC 1918, RFC
 * 6598, unique local, multicast, broadcast, reserved; mapped, compatible,
 * translated (RFC 6052, 6to4, Teredo) forms are judged by the address inside.
 * IPv4 is given in its mapped form.
 */
bool address_is_public(const struct in6_addr *address);

bool address_is_loopback(const struct in6_addr *address);

#endif
