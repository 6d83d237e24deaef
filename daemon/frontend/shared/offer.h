/* SPDX-License-Identifier: ISC */
/*
 * What the broker offers this front-end: its configuration, its helpers and
 * its listeners.
 */
#ifndef OFFER_H
#define OFFER_H

#include <stddef.h>
#include <stdint.h>

#include "control.h"

/* What CONFIGURE or RELOAD and the LISTENERs behind it say. */
struct offer {
	struct control_configure configure;
	int helpers[TLS_HELPERS]; /* their channels, or -1 */
	struct {
		struct control_listener listener;
		int fds[CONTROL_LISTENER_FDS_MAX];
		size_t nfds;
	} listeners[CONTROL_LISTENERS_MAX];
	uint32_t have; /* listeners so far */
};

#endif
