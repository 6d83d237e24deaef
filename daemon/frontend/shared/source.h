/* SPDX-License-Identifier: ISC */
/*
 * Sources of connections, and what each of them has done. A source is an IPv4
 * address, or an IPv6 network of 64 bits, which is what one customer gets. The
 * number of connections of a source is limited. A source of bad connections
 * collects penalty time, like with PerSourcePenalties of sshd, and is refused
 * while it has too much.
 */
#ifndef SOURCE_H
#define SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "control.h"
#include "fairness.h"

struct source;

enum offence {
	OFFENCE_AUTHENTICATION, /* its credential belongs to nobody */
	OFFENCE_DEADLINE, /* it had no session within the pre-auth deadline */
	OFFENCE_PROTOCOL, /* it sent neither TLS nor HTTP */
	OFFENCE_CRASH,	  /* its runner crashed */
};
#define OFFENCES (OFFENCE_CRASH + 1)

enum admission { ADMITTED, REFUSED_CONNECTIONS, REFUSED_PENALTY };

/* The most sources that are remembered. */
#define SOURCES_MAX 65536

/*
 * Decides about a new connection. On ADMITTED, *source is valid until
 * source_leave(), and NULL for exempt addresses and for sockets that are not
 * IP. On REFUSED_PENALTY, *wait_ms is the penalty time that is left. `now` is
 * in milliseconds, here and below.
 */
enum admission source_admit(const struct frontend_limits *c,
    const struct sockaddr *from, int64_t now, struct source **source,
    int64_t *wait_ms);

/* Writes "websocket ADDRESS:PORT", for messages and the broker. */
void source_text(const struct sockaddr *from, char text[CONTROL_PEER_MAX]);

/* Returns true if the address is in one of the networks. */
bool source_lies_in(const struct sockaddr *from, const struct nets *nets);

/* Returns the queue and slots of the source. */
struct fair_source *source_share(struct source *s);

/* Ends a connection of the source. s may be NULL. */
void source_leave(struct source *s, int64_t now);

/* Adds the penalty for an offence. Returns true if the source is refused from
 * now on and was not before. s may be NULL. */
bool source_penalise(const struct frontend_limits *c, struct source *s,
    enum offence offence, int64_t now);

/* Returns the number of remembered sources. */
size_t source_count(void);

#endif
