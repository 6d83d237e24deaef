/* SPDX-License-Identifier: ISC */
/*
 * Control groups of the sessions: what all processes of one may take together,
 * and a place where its runner makes groups for its commands. Without root only
 * where some are delegated to the user.
 */
#ifndef SESSION_CGROUP_H
#define SESSION_CGROUP_H

#include "cgroup.h"
#include "control.h"

/* Processes of one session, its runner and helpers included. */
#define SESSION_PIDS_MAX 4096

/* Below the group execd was started in. What none of them counts is logged,
 * with what takes its place. `broker` moves where this process moves. */
void session_cgroup_init(pid_t broker);

/* Which limits sessions and their commands can have: a mask of enum
 * cgroup_controller. */
unsigned session_cgroup_controllers(void);

/* Removes what session_cgroup_init() made. */
void session_cgroup_clear(void);

/* By what its runner joins: in version 2 a leaf of its own, so that the groups
 * of commands beside it can have limits. As cgroup_open_joins(). */
int session_cgroup_open_joins(
    const struct cgroup *session, int joins[CGROUP_HIERARCHIES]);

/* A group for a session, whose user may make others below it. The directories
 * are the caller's; there are none where the host has none. 0 with all limits
 * in force that session_cgroup_controllers() can hold, or -errno: -EOPNOTSUPP
 * the host cannot hold it to that. */
int session_cgroup_for(
    const struct control_user *user, const char *group, struct cgroup *c);

struct saved;
void session_cgroup_save(struct saved *s);

/* The session is over: whoever is left is killed, its groups removed. */
void session_cgroup_close(const char *name);

#endif
