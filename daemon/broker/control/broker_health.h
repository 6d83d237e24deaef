/* SPDX-License-Identifier: ISC */
/*
 * Tells whether all of execd answers, for the watchdog of systemd and for
 * `execd ctl status`.
 */
#pragma once

#include "base.h"

struct broker;

/* Names the part that does not answer, or returns NULL if all do. */
const char *broker_health_of_parts(const struct broker *m, int64_t now);

/* The same, and also tells what else keeps sessions from being served. */
const char *broker_health_reason(const struct broker *m, int64_t now);

/*
 * How much this host can take, for the agent check of a proxy (execd.conf(5),
 * `serve`). The front-end is told when it changes and answers by itself.
 */

struct broker;

/* Tells the front-end if something has changed. Returns when to call it again,
 * or -1 if no listener serves an agent. */
int64_t load_watch(struct broker *m, int64_t now);

/*
 * Returns the part of the places that is left, in percent: the part of them
 * that is free, or the part of the time in which no work waited, whichever is
 * less. `pressure` is the part of the time in which work waited. It is 0 only
 * if no place is free, because proxies take 0 for "nobody new".
 */
uint8_t load_room(size_t places, size_t used, unsigned pressure);

/* Returns the first avg10 of a file of /proc/pressure, in percent and rounded
 * up, or 0 if the text is something else. */
unsigned load_pressure(const char *text);

/* --- the drain ----------------------------------------------------------- */

/*
 * The operator's drain: no new session is opened after the drain-notice, and
 * open ones go on until they end. The operator can undo it. The state survives
 * the end of the broker, but not the end of root's execd.
 */

/* The signal that begins the end of everything with a drain. With --sessions,
 * SIGTERM ends this broker alone. */
int drain_signal(const struct broker *m);

/* Reads the state that the previous broker left, also of its end. */
void drain_init(struct broker *m);

/* Returns false if the state was so already. */
bool drain_begin(struct broker *m, uint32_t uid);
bool drain_end(struct broker *m, uint32_t uid);

/* Ends the notice. Returns when to call it again (CLOCK_MONOTONIC ms) or -1. */
int64_t drain_watch(struct broker *m, int64_t now);

/* Returns for how many ms new sessions are still opened although the balancer
 * was told; 0: there is no notice now. */
uint64_t drain_notice_ms(const struct broker *m);

/* The times of a stop have changed: the next broker goes on with them. */
void drain_keep_times(const struct broker *m);

/* The next broker is to serve. */
void drain_forget_times(void);
