/* SPDX-License-Identifier: ISC */
/*
 * Tells whether execd works.
 */
#include "health.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stddef.h>

#include "frontend.h"
#include "loop.h"
#include "tls_helper.h"
#include "util.h"

/* The broker sends a PING every five seconds. */
#define BROKER_SILENT_MS 8000
#define HELPERS_ASKED_MS 3000

static int64_t heard_ms;

void
health_heard(void)
{
	heard_ms = now_ms();
}

int64_t
health_silent_ms(void)
{
	return now_ms() - heard_ms;
}

static void
ask_helpers_cb(evutil_socket_t fd, short what, void *arg)
{
	helper_ask_all();
}

void
health_watch(void)
{
	static struct event timer;
	const struct timeval every = timeval_of_ms(HELPERS_ASKED_MS);

	health_heard();
	event_assign(&timer, base, -1, EV_PERSIST, ask_helpers_cb, NULL);
	loop_add(&timer, &every);
}

const char *
health_reason(void)
{
	if (frontend_drain == DRAIN_STOPPING)
		return "stopping\n";
	if (frontend_drain == DRAIN_OPERATOR)
		return "drained by the operator\n";
	/* This program may have been stopped itself. Messages that the broker
	 * sent meanwhile are read in this turn, before the next request. */
	if (health_silent_ms() > BROKER_SILENT_MS)
		return "the broker does not answer\n";
	return helper_reason();
}
