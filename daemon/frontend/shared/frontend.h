/* SPDX-License-Identifier: ISC */
/*
 * State that the whole front-end shares: the event loop, the configuration, and
 * limits.
 */
#pragma once

#include "base.h"
#include "control.h"

struct event_base;

/* The most bytes of one read. All connections share the buffer, so that an idle
 * connection holds no memory. */
#define SCRATCH_BYTES (256u << 10)

/* The most unread answers that a client may have before it has a session.
 * Beyond this no more of its messages are handled. */
#define UNREAD_MAX_BYTES (1u << 20)

/* The largest frame of a runner, which is the largest possible answer. */
#define RUNNER_FRAME_MAX (1u << 30)

#define LINGER_MS  1000 /* for the runner to read the last messages */
#define GOODBYE_MS 2000 /* for the client to read a close frame */

extern struct event_base *base;
extern enum drain_reason frontend_drain; /* why no new session may be opened */
extern bool frontend_leaves;		 /* another front-end takes over */
extern struct frontend_limits config;	 /* [limits] of execd.conf(5) */
extern uint8_t scratch[SCRATCH_BYTES];

/* The contents of CONFIGURE or RELOAD, and of the LISTENER messages after
 * it. */
struct offer {
	struct control_configure configure;
	int helpers[TLS_HELPERS]; /* channels to them, or -1 */
	struct {
		struct control_listener listener;
		int fds[CONTROL_LISTENER_FDS_MAX];
		size_t nfds;
	} listeners[CONTROL_LISTENERS_MAX];
	uint32_t have; /* listeners received so far */
};
