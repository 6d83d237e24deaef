/* SPDX-License-Identifier: ISC */
/*
 * What the event loop cannot do ends the program that would wait for it.
 */
#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>

struct event;
struct event_base;
struct timeval;

/* From now on a warning of libevent's ends the program: an event that is not
 * watched for never comes, and somebody would wait for it for ever. */
void loop_trust(void);

/* event_add(3), which ends the program when it fails. A file, which
 * is always ready, is not watched, and that is no failure. */
void loop_add(struct event *ev, const struct timeval *after);

/* Log lines that found no room are tried again by this loop. */
void loop_log(struct event_base *base);

/* Watched for from now on, or no more, where *watching says what is so. */
void loop_watch(struct event *ev, bool *watching, bool wanted);

#endif
