/* SPDX-License-Identifier: ISC */
/*
 * What the whole front-end shares: the event loop, its configuration, the
 * numbers that bound it.
 */
#ifndef FRONTEND_H
#define FRONTEND_H

#include "control.h"

struct event_base;

/* One read; shared by all connections, so that an idle one holds no memory. */
#define SCRATCH_BYTES (256u << 10)

/* Answers a client has not read before it attached a session; then no more of
 * its messages are taken. */
#define UNREAD_MAX_BYTES (1u << 20)

/* A frame of the runner: the largest answer there is. */
#define RUNNER_FRAME_MAX (1u << 30)

#define LINGER_MS  1000 /* for the runner to take the last messages */
#define GOODBYE_MS 2000 /* for the client to hear a close frame */

extern struct event_base *base;
extern enum drain_reason frontend_drain; /* why no session is opened */
extern struct control_configure config;
extern uint8_t scratch[SCRATCH_BYTES];

#endif
