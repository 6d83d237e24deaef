/*
 * What the session's commands are, told to the monitor for its audit log, if
 * it keeps one.
 */
#ifndef AUDIT_H
#define AUDIT_H

struct session;
struct session_process;

/* A command runs. */
void audit_started(const struct session *s, const struct session_process *p,
    char *const argv[], const char *cwd);

/* It ended by itself or was killed. */
void audit_exited(const struct session *s, const struct session_process *p);

#endif
