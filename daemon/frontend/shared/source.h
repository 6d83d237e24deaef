/* SPDX-License-Identifier: ISC */
/*
 * Sources of connections, and what each of them has done. A source is an IPv4
 * address, or an IPv6 network of 64 bits, which is what one customer gets. The
 * number of connections of a source is limited. A source of bad connections
 * collects penalty time, like with PerSourcePenalties of sshd, and is refused
 * while it has too much.
 */
#pragma once

#include "base.h"
#include "control.h"
#include "queue.h"

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

/* Adds the penalty for an offence. Returns for how many milliseconds the source
 * is refused from now on, if it was not before; else 0. s may be NULL. */
int64_t source_penalise(const struct frontend_limits *c, struct source *s,
    enum offence offence, int64_t now);

/* Returns the number of remembered sources. */
size_t source_count(void);

/*
 * Decides which connection may come in next. Connections that have shown no
 * credential yet need a slot, and the number of slots is limited. The others
 * wait, each in the queue of its source, and the sources take turns. A source
 * may hold as many slots as remain free. A single source can therefore hold
 * half of them, and other sources always find room, however many connections it
 * makes.
 */

/* A connection that waits. Part of the caller's object. */
struct fair_waiter {
	TAILQ_ENTRY(fair_waiter) link; /* fair_source.waiters */
	struct fair_source *source;
};

/* A source. It must exist while it has slots or waiters. */
struct fair_source {
	TAILQ_HEAD(, fair_waiter) waiters; /* oldest first */
	/* fairness.turns, while it has waiters */
	TAILQ_ENTRY(fair_source) turn;
	size_t waiting, slots;
};

struct fairness {
	TAILQ_HEAD(, fair_source) turns;
	size_t waiting, slots; /* of all sources together */
};

#define FAIRNESS_INITIALIZER(f)                                                \
	{                                                                      \
		.turns = TAILQ_HEAD_INITIALIZER((f).turns)                     \
	}

void fair_source_init(struct fair_source *s);

/* Takes a slot, if less than max are taken and the source may have another.
 * Returns false if the connection must wait; it must also wait if others of its
 * source do. */
bool fairness_enter(struct fairness *f, struct fair_source *s, size_t max);

/* Gives a slot back. */
void fairness_leave(struct fairness *f, struct fair_source *s);

/* Adds w to the end of its source's queue. */
void fairness_wait(
    struct fairness *f, struct fair_source *s, struct fair_waiter *w);

/* Removes w from the queue. */
void fairness_forget(struct fairness *f, struct fair_waiter *w);

/* Returns the next connection that may come in, or NULL. It has a slot and is
 * no longer in the queue. */
struct fair_waiter *fairness_next(struct fairness *f, size_t max);

/* Returns the oldest waiter of the source with the most waiters. Among equal
 * sources, the one whose turn is last is chosen. Returns NULL if nobody
 * waits. */
struct fair_waiter *fairness_fullest(const struct fairness *f);
