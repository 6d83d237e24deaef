/* SPDX-License-Identifier: ISC */
/*
 * Spare runners. Most of what a session costs is making its runner: so an
 * identity that just had one has the next made while nothing else is to be
 * done. It waits in its namespaces and control groups, told everything but who
 * its client is; it counts as no session, and no record has it.
 */
#ifndef SESSION_SPARE_H
#define SESSION_SPARE_H

#include <stdint.h>

struct identity;
struct broker;
struct registry;
struct session;

/* The one that waits for the identity, the caller's; NULL: none does. */
struct session *session_spare_take(
    struct broker *m, const struct identity *identity);

/* The identity has a new session: the next one is to find a spare. */
void session_spare_want(struct broker *m, struct identity *identity);

/* Nothing else is to be done: makes one that is wanted. */
void session_spare_make(struct broker *m);

/* Ends those that waited for too long. Returns when to come back
 * (CLOCK_MONOTONIC ms; now, while one is wanted) or -1. */
int64_t session_spare_expire(struct broker *m, int64_t now);

/* Ends them all: what they were told is not so any more. */
void session_spare_drop_all(struct broker *m);

/* It hung up, or said something: it is ended. It is dead. The next comes with
 * the next session: not to be made, and to die, for ever. */
void session_spare_lost(struct broker *m, struct session *s);
void session_spare_reaped(struct broker *m, struct session *s);

#endif
