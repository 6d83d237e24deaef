/* SPDX-License-Identifier: ISC */
/*
 * Sessions that the operator ended, for a while: a client that comes back to
 * one is told who did it and why, and not only that there is no such session.
 */
#ifndef SESSION_ENDED_H
#define SESSION_ENDED_H

#define SESSION_ENDED_MAX 64 /* the oldest is forgotten first */

struct identity;
struct session;

/* Its end_reason is remembered. */
void session_ended_note(const struct session *s);

/* Why the session of that id was ended, if it was the identity's; or NULL. */
const char *session_ended_reason(
    const struct identity *identity, const char *id);

#endif
