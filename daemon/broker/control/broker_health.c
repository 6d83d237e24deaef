/* SPDX-License-Identifier: ISC */
/*
 * Tells whether all of execd answers. The broker asks the front-end. The
 * front-end asks its helpers, and tells when one does not answer.
 */
#include "broker_health.h"

#include "broker_state.h"
#include "frontend_child.h"
#include "tls_helpers.h"

const char *
broker_health_of_parts(const struct broker *m, int64_t now)
{
	const struct frontend *f = m->frontend;

	if (f->state == FRONTEND_DOWN)
		return "there is no front-end";
	if (f->state == FRONTEND_CONFINING)
		return "the front-end is starting";
	if (f->answer_ms > 0 && now >= f->answer_ms)
		return "the front-end does not answer";
	if (m->helpers->restart_ms > 0 || helpers_are_ending(m->helpers))
		return "a key or certificate process does not answer";
	return NULL;
}

const char *
broker_health_reason(const struct broker *m, int64_t now)
{
	const char *ill = broker_health_of_parts(m, now);

	return ill == NULL && m->audit_stopped
		   ? "the audit log cannot be written"
		   : ill;
}
