/* SPDX-License-Identifier: ISC */
/*
 * Writes sessions, and what is done in them, to the audit log. A runner is
 * trusted to speak for its own session and for no other. The broker adds to
 * whom the session belongs.
 */
#ifndef SESSION_AUDIT_H
#define SESSION_AUDIT_H

#include <stddef.h>
#include <stdint.h>

struct control_session;
struct identity;
struct origin;
struct broker;
struct session;
struct session_commands;

/* Records an event of the session. from and reason may be NULL. Returns 0, or
 * -errno if the session must not go on without a record. */
int session_audit(struct broker *m, const struct session *s, const char *event,
    const struct origin *from, const char *reason);

/* Records that a client with a valid credential got no session. The answer says
 * why. */
void session_audit_refused(struct broker *m, const struct identity *identity,
    const struct origin *from, const struct control_session *answer);

/* Records that a terminal is recorded, and in which file. Returns as above. */
int session_audit_recorded(struct broker *m, const struct session *s,
    const char *process, const char *path);

/* An adopted session has a running command whose start is recorded. Returns 0
 * or -EBADMSG. */
int session_audit_running(struct session *s, const uint8_t *packet, size_t len);

/* Adds what a new runner must report to the commands that it begins with. */
void session_audit_configure(
    struct broker *m, struct session *s, struct session_commands *commands);

/* Takes a report of the runner. Returns 0, -EBADMSG if it is none of these or
 * impossible, or another -errno as above. */
int session_audit_report(
    struct broker *m, struct session *s, const uint8_t *packet, size_t len);

/* The runner is gone: records the end of every command whose end it did not
 * report. */
void session_audit_processes_ended(struct broker *m, struct session *s);

/* While records are required and cannot be written, runners are told to
 * start nothing, and the log is tried again from time to time. Returns
 * when, or -1. */
int64_t session_audit_watch(struct broker *m, int64_t now);

#endif
