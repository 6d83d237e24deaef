/* SPDX-License-Identifier: ISC */
/*
 * Spare runners. Making the runner is most of the cost of a session. So when an
 * identity gets a session, the next runner is made while there is nothing else
 * to do. It waits in its namespaces and control groups and knows everything but
 * its client. It does not count as a session, and is not recorded.
 */
#ifndef SESSION_START_H
#define SESSION_START_H

#include <stdint.h>

struct identity;
struct broker;
struct registry;
struct session;

/* Returns the spare that waits for the identity, which is then the caller's, or
 * NULL. */
struct session *session_spare_take(
    struct broker *m, const struct identity *identity);

/* The identity has a new session, and the next one should find a spare. */
void session_spare_want(struct broker *m, struct identity *identity);

/* Called when there is nothing else to do: makes a spare that is wanted. */
void session_spare_make(struct broker *m);

/* Ends spares that waited too long. Returns when to call it again
 * (CLOCK_MONOTONIC ms; now, while one is wanted) or -1. */
int64_t session_spare_expire(struct broker *m, int64_t now);

/* Ends all spares, because what they were told has changed. */
void session_spare_drop_all(struct broker *m);

/* The spare hung up or reported something, so it is ended. It is not restarted
 * before the next session, to avoid a crash loop. */
void session_spare_lost(struct broker *m, struct session *s);
void session_spare_reaped(struct broker *m, struct session *s);

#endif
