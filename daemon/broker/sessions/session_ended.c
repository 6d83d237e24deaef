/* SPDX-License-Identifier: ISC */
/*
 * Remembers the latest sessions that the operator ended.
 */
#include "session_ended.h"

#include <stdio.h>
#include <string.h>

#include "identity.h"
#include "session_registry.h"
#include "util.h"

static struct ended {
	char id[CONTROL_SESSION_ID_MAX]; /* "": not used yet */
	struct identity *identity;	 /* a reference */
	char reason[256];
} ended[SESSION_ENDED_MAX];
static size_t next;

void
session_ended_note(const struct session *s)
{
	struct ended *e = &ended[next++ % SESSION_ENDED_MAX];

	if (e->identity != NULL)
		identity_unref(e->identity);
	e->identity = identity_ref(s->identity);
	memcpy(e->id, s->id, sizeof(e->id));
	snprintf(e->reason, sizeof(e->reason), "%s",
	    s->end_reason ? s->end_reason : "ended");
}

const char *
session_ended_reason(const struct identity *identity, const char *id)
{
	for (size_t i = 0; i < SESSION_ENDED_MAX; i++)
		if (ended[i].id[0] != '\0' && strcmp(ended[i].id, id) == 0 &&
		    identity_is(ended[i].identity, identity))
			return ended[i].reason;
	return NULL;
}
