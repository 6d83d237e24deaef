/* SPDX-License-Identifier: ISC */
#include "broker_state.h"

struct broker broker;

bool
broker_is_going(const struct broker *m)
{
	return m->stopping || m->draining || m->notice_until_ms > 0;
}

const char *
drain_reason(const struct broker *m)
{
	/* A broker that leaves serves whom its front-end has let in. */
	if ((m->stopping && !m->leaving) || m->draining)
		return "the server is shutting down";
	return m->drain.drained && m->drain.notice_until_ms == 0
		   ? "the server takes no new sessions: it is "
		     "drained by its operator"
		   : NULL;
}
