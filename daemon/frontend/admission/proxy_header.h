/* SPDX-License-Identifier: ISC */
/*
 * The header of the PROXY protocol, version 2, as haproxy defines it. A proxy
 * sends it before everything else and says where its client is. This file only
 * decodes; whose header is believed is the listener's decision.
 */
#ifndef PROXY_HEADER_H
#define PROXY_HEADER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The longest header that is accepted: the fixed part, two AF_UNIX addresses,
 * and 304 bytes of what a proxy adds. */
#define PROXY_HEADER_MAX 536

struct proxy_header {
	bool local; /* the proxy's own connection, such as a health check */
	/* Where the client is: AF_INET or AF_INET6. Not set with `local`. */
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} from;
};

/*
 * Decodes the n bytes of a header that have come so far. Returns how many bytes
 * are to be read next: reading no more leaves what is behind the header in the
 * socket. Returns 0 when the header is complete and *h is filled in, or
 * -EBADMSG with the reason in *why.
 */
int proxy_header_parse(
    const uint8_t *p, size_t n, struct proxy_header *h, const char **why);

#endif
