/* SPDX-License-Identifier: ISC */
/*
 * How much this host can take, for the agent check of a proxy (execd.conf(5),
 * `serve`). The front-end is told when it changes and answers by itself.
 */
#ifndef LOAD_H
#define LOAD_H

#include <stddef.h>
#include <stdint.h>

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

#endif
