/* SPDX-License-Identifier: ISC */
/*
 * Remembers the latest sessions that the operator ended. A client that resumes
 * one is told who ended it and why, and not only that there is no such session.
 */
#ifndef SESSION_ENDED_H
#define SESSION_ENDED_H

#define SESSION_ENDED_MAX 64 /* the oldest is forgotten first */

struct identity;
struct session;

/* Remembers the session with its end_reason. */
void session_ended_note(const struct session *s);

/* Returns why the session of that id was ended, if it belonged to the identity,
 * or NULL. */
const char *session_ended_reason(
    const struct identity *identity, const char *id);

#endif
