/* SPDX-License-Identifier: ISC */
/*
 * What an identity's sessions may have: how many, and for how long.
 */
#ifndef SESSION_LIMIT_H
#define SESSION_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct identity;
struct broker;
struct registry;
struct session;

/* Is there room for one more? False with a sentence in reason[256]. */
bool session_limit_room(
    const struct broker *m, const struct identity *identity, char *reason);

/* So many sessions, and spares, have a place for their descriptors; and what
 * so many would need, the broker's own included. */
uint32_t session_limit_descriptors(void);
uint64_t session_limit_wanted(uint32_t sessions);

/* Its time runs from now on, if its identity's sessions have a deadline. */
void session_limit_time(
    struct registry *r, struct session *s, int64_t opened_ms);

/* Ends those whose time is over. Returns the next deadline (CLOCK_MONOTONIC
 * ms) or -1. */
int64_t session_limit_expire(struct broker *m, int64_t now);

/* Ends a detached session in which nothing was ever started, if places are
 * scarcer than half. Its client loses nothing by it. */
void session_limit_end_empty(struct broker *m, struct session *s);

/* Ends those that nobody came back to, some at a time. Returns likewise. */
int64_t session_limit_detached(struct broker *m, int64_t now);

#endif
