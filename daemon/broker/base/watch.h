/* SPDX-License-Identifier: ISC */
/*
 * What the broker's loop waits for: descriptors and times. An event is embedded
 * in its owner, and is zero while nothing is waited for.
 */
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base.h"

/* Makes the loop; `alone` as in loop_new_direct(). */
void watch_init(bool alone);

/* Handles what is ready, or waits for it. */
void watch_turn(void);

/* Watches fd, which then belongs to the event, for EV_READ or EV_WRITE or both.
 * Returns 0 or -errno. */
int watch_add(
    struct event *e, int fd, short what, event_callback_fn ready, void *arg);

/* Changes for what it is watched; 0: for nothing. */
void watch_change(struct event *e, short what);

/* Returns the descriptor, or -1 if there is none. */
int watch_fd(const struct event *e);

/* Calls `due` in ms milliseconds, and forgets an earlier time of the event. */
void watch_time(struct event *e, int64_t ms, event_callback_fn due, void *arg);

/* The event is no longer waited for. Returns its descriptor, which is then the
 * caller's, or -1 if it had none. */
int watch_end(struct event *e);

/* The same, and closes the descriptor. */
void watch_close(struct event *e);

/* There is a turn at that time (CLOCK_MONOTONIC ms; -1: none) or before it, for
 * those who judge something in each turn. */
void watch_turn_at(int64_t at_ms);

/* Calls the function once when there is nothing else to do. It is always the
 * same one. */
void watch_idle(event_callback_fn idle);

/*
 * Closes channels whose other end is not trusted (dispose.h).
 */

/* Closes our end. No close makes the caller wait: unread messages may also
 * bring descriptors. -1 is skipped. */
void dispose_channel(int fd);
