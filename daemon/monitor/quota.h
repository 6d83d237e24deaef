/*
 * Control groups of the sessions: what all processes of one may take together,
 * and a place where its runner makes groups for its commands. Without root only
 * where some are delegated to the user.
 */
#ifndef QUOTA_H
#define QUOTA_H

#include "cgroup.h"
#include "identity.h"

/* Processes of one session, its runner and helpers included. */
#define SESSION_PIDS_MAX 4096

/* Below the group execd was started in. What none of them counts is logged,
 * with what takes its place. */
void quota_init(void);

/* Which limits sessions and their commands can have: a mask of enum
 * cgroup_controller. */
unsigned quota_controllers(void);

/* Instead of quota_init(), where another process makes the groups. */
void quota_learn(unsigned controllers);

/* Can the sessions of every identity be held to their limits here? -EOPNOTSUPP,
 * and the log says which cannot. */
int quota_check(struct identity *const *identities, size_t n);

/* Removes what quota_init() made. */
void quota_clear(void);

/* By what its runner joins: in version 2 a leaf of its own, so that the groups
 * of commands beside it can have limits. As cgroup_open_joins(). */
int quota_open_joins(
    const struct cgroup *session, int joins[CGROUP_HIERARCHIES]);

/* A group for a session of the identity, whose user may make others below it.
 * The directories are the caller's; there are none where the host has none. 0
 * with all limits in force that quota_controllers() can hold, or -errno with
 * the reason: -EOPNOTSUPP the host cannot hold it to that, in quota_reason()'s
 * words. */
int quota_for(const char *name, const struct identity *id, struct cgroup *c,
    char reason[256]);
void quota_reason(const struct identity *id, char reason[256]);

/* The session is over: whoever is left is killed, its groups removed. */
void quota_close(const char *name);

#endif
