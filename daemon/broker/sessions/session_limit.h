/* SPDX-License-Identifier: ISC */
/*
 * How many sessions an identity may have, and for how long.
 */
#ifndef SESSION_LIMIT_H
#define SESSION_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct identity;
struct broker;
struct registry;
struct session;

/* Tells whether there is room for one more session. If not, reason[256] is a
 * sentence that says why. */
bool session_limit_room(
    const struct broker *m, const struct identity *identity, char *reason);

/* Returns how many sessions there can be, all identities together. */
size_t session_limit_places(const struct broker *m);

/* The first returns how many sessions and spares have descriptors. The
 * second returns how many descriptors so many would need, the broker's
 * own included. */
uint32_t session_limit_descriptors(void);
uint64_t session_limit_wanted(uint32_t sessions);

/* Starts the session's time if its identity has a session-deadline. */
void session_limit_time(
    struct registry *r, struct session *s, int64_t opened_ms);

/* Ends sessions whose time is over. Returns the next deadline (CLOCK_MONOTONIC
 * ms) or -1. */
int64_t session_limit_expire(struct broker *m, int64_t now);

/* Ends a detached session in which nothing was ever started, if less than half
 * of the places are left. Its client loses nothing. */
void session_limit_end_empty(struct broker *m, struct session *s);

/* Ends sessions that were not resumed in time, some at a time. Returns
 * likewise. */
int64_t session_limit_detached(struct broker *m, int64_t now);

/*
 * exit-when-idle: an execd that runs as a job of a cluster ends when nobody has
 * had a session for a while.
 */

struct broker;

/* Asks the front-end, when the time has come, whether anybody is at its door.
 * Returns when to call it again (CLOCK_MONOTONIC ms) or -1. */
int64_t session_idle_expire(struct broker *m, int64_t now);

/* The front-end says that nobody is. Returns 1 if execd stops now, 0 if the
 * answer comes too late, or -EPERM if nobody asks for it. */
int session_idle_confirmed(struct broker *m);

#endif
