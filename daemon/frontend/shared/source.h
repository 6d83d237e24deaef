/* SPDX-License-Identifier: ISC */
/*
 * Where connections come from, and what each source has done: an IPv4
 * address, or an IPv6 network of 64 bits, which is what one customer gets. A
 * source has so many connections and no more; one that fails collects time,
 * as sshd's PerSourcePenalties do, and is refused while it has too much.
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
	OFFENCE_AUTHENTICATION, /* a credential that is nobody's */
	OFFENCE_DEADLINE,	/* no session within the pre-auth deadline */
	OFFENCE_PROTOCOL,	/* neither TLS nor HTTP */
	OFFENCE_CRASH,		/* its runner had a fault */
};
#define OFFENCES (OFFENCE_CRASH + 1)

enum admission { ADMITTED, REFUSED_CONNECTIONS, REFUSED_PENALTY };

/* Sources that are remembered at once. */
#define SOURCES_MAX 65536

/*
 * A connection from there. ADMITTED: *source is its source until
 * source_leave(), NULL for one that is exempt. REFUSED_PENALTY: *wait_ms is
 * how long it still has.
 */
enum admission source_admit(const struct control_configure *c,
    const struct sockaddr *from, int64_t now, struct source **source,
    int64_t *wait_ms);

/* Its part in what is shared fairly. */
struct fair_source *source_share(struct source *s);

/* The connection is over. NULL is fine. */
void source_leave(struct source *s, int64_t now);

/* Adds what the offence costs. True: from now on it is refused, and was not
 * before. NULL is fine. */
bool source_penalise(const struct control_configure *c, struct source *s,
    enum offence offence, int64_t now);

/* Sources remembered. */
size_t source_count(void);

#endif
