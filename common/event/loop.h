/* SPDX-License-Identifier: ISC */
/*
 * The event loop. If the loop cannot watch an event, the program ends instead
 * of waiting for it for ever.
 */
#pragma once

#include "base.h"

struct event;
struct event_base;
struct timeval;

/*
 * Makes the loop of a program that runs as a session's user. A program has one
 * loop. Without memory for it the program ends. loop_turn() waits for events
 * and handles them. It waits with epoll(7) and, when the user has no watch left
 * for it, with poll(2): the kernel counts the watches of a user, and any
 * process of that user may take all of them (fs.epoll.max_user_watches). An
 * event with EV_ET does not work then.
 */
struct event_base *loop_new(void);
void loop_turn(struct event_base *base);

/*
 * Makes the loop of a program of which others have copies of descriptors: the
 * kernel stops to watch one as soon as its event is deleted. `alone`: the
 * program has its user for itself; else it waits with poll(2), for which other
 * processes of the user can take nothing away. Without memory for it the
 * program ends.
 */
struct event_base *loop_new_direct(bool alone);

/* From now on any warning of libevent ends the program. An event that is not
 * watched would never occur, and the program would wait for it for ever. */
void loop_trust(void);

/* Like event_add(3), but ends the program on failure. A regular file is always
 * ready and cannot be watched; that is not a failure. */
void loop_add(struct event *ev, const struct timeval *after);

/* The same with a time in milliseconds. */
void loop_add_ms(struct event *ev, uint64_t ms);

/* Makes this loop retry log lines that could not be written. */
void loop_log(struct event_base *base);

/* Starts or stops watching an event. *watching is the current state and is
 * updated. */
void loop_watch(struct event *ev, bool *watching, bool wanted);
