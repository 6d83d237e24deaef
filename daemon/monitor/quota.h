/*
 * Control groups of the sessions: what all processes of one may take together,
 * and a place where its runner makes groups for its commands. Root only.
 */
#ifndef QUOTA_H
#define QUOTA_H

#include "cgroup.h"
#include "identity.h"

/* Below the group execd was started in. Without any, execd goes on: commands
 * have resource limits (setrlimit(2)) instead, which is logged. */
void quota_init(void);

/* Removes what quota_init() made. */
void quota_clear(void);

/* A group for a session of the user, who may make others below it. False: the
 * host gives none. The directories are the caller's. */
bool quota_open(const char *session_id, uid_t uid, gid_t gid, uint64_t pids,
    uint64_t memory_bytes, struct cgroup *c);

/* The same, with what the identity may have. True without a group if it needs
 * none. */
bool quota_for(
    const char *session_id, const struct identity *id, struct cgroup *c);

/* The session is over: whoever is left is killed, its groups removed. */
void quota_close(const char *session_id);

#endif
