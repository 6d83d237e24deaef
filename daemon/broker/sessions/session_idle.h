/* SPDX-License-Identifier: ISC */
/*
 * exit-when-idle: an execd that runs as a job of a cluster ends when nobody has
 * had a session for a while.
 */
#ifndef SESSION_IDLE_H
#define SESSION_IDLE_H

#include <stdbool.h>
#include <stdint.h>

struct broker;

/* Asks the front-end, when the time has come, whether anybody is at its door.
 * Returns when to call it again (CLOCK_MONOTONIC ms) or -1. */
int64_t session_idle_expire(struct broker *m, int64_t now);

/* The front-end says that nobody is. Returns 1 if execd stops now, 0 if the
 * answer comes too late, or -EPERM if nobody asks for it. */
int session_idle_confirmed(struct broker *m);

#endif
