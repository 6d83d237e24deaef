/* SPDX-License-Identifier: ISC */
/*
 * What the broker gives the front-end: the configuration, channels to the
 * helpers, and listeners.
 */
#ifndef OFFER_H
#define OFFER_H

#include <stddef.h>
#include <stdint.h>

#include "control.h"

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

#endif
