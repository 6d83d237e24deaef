/* SPDX-License-Identifier: ISC */
/*
 * Sessions and what is done in them in the audit log. A runner is trusted to
 * speak for its own session and for no other: whose it is, the broker adds.
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

/* An event of the session; from and reason may be NULL. 0, or -errno if it
 * must not go on without a record. */
int session_audit(struct broker *m, const struct session *s, const char *event,
    const struct origin *from, const char *reason);

/* No session for one whose credential is good; the answer says why. */
void session_audit_refused(struct broker *m, const struct identity *identity,
    const struct origin *from, const struct control_session *answer);

/* A terminal is recorded, there. As above. */
int session_audit_recorded(struct broker *m, const struct session *s,
    const char *process, const char *path);

/* A command of an adopted session that runs, and whose start is on record. 0 or
 * -EBADMSG. */
int session_audit_running(struct session *s, const uint8_t *packet, size_t len);

/* What a new runner shall tell of, among the commands that it begins with. */
void session_audit_configure(
    struct broker *m, struct session *s, struct session_commands *commands);

/* A report of its runner. 0, -EBADMSG if it is none of these or impossible,
 * or another -errno as above. */
int session_audit_report(
    struct broker *m, struct session *s, const uint8_t *packet, size_t len);

/* Its runner is gone: records the end of every command whose end it did not
 * report. */
void session_audit_processes_ended(struct broker *m, struct session *s);

/* While records are required and cannot be written, runners are told to start
 * nothing; tried again now and then. Returns when, or -1. */
int64_t session_audit_watch(struct broker *m, int64_t now);

#endif
