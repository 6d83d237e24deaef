/* SPDX-License-Identifier: ISC */
/*
 * The control groups of sessions. They limit what all processes of a session
 * use together, and the runner makes groups for its commands in them. Without
 * root they exist only where some are delegated to the user.
 */
#pragma once

#include "cgroup.h"
#include "control_spawn.h"

/* Makes the groups below the one that execd was started in. All processes of
 * this execd move into them. */
void session_cgroup_init(void);

/* Returns which limits sessions and their commands can have: a mask of enum
 * cgroup_controller. */
unsigned session_cgroup_controllers(void);

/* As cgroup_put(), for the group of all sessions. */
size_t session_cgroup_put(uint8_t *hierarchies, int dirs[CGROUP_HIERARCHIES]);

/* Removes what session_cgroup_init() made. */
void session_cgroup_clear(void);

/* Sets what all sessions together may have, and what those of an identity may
 * have that has some; for each list that comes into force. */
void session_cgroup_limit_all(const struct control_seal *seal);
void session_cgroup_limit(const struct control_user *user);

/* Makes the group of that number for a session, in which its user may make
 * others, in the group of its identity, whose number is *identity. The
 * directories are the caller's; there are none if the host has none. Returns 0
 * with all limits in force that session_cgroup_controllers() names, or -errno;
 * -EOPNOTSUPP if the host cannot enforce a limit. */
int session_cgroup_for(const struct control_user *user, uint64_t number,
    uint64_t *identity, struct cgroup *c);

/* Moves the calling process, which becomes the runner, into the session's
 * group. Returns 0 or -errno. */
int session_cgroup_join(const struct cgroup *session);

struct saved;
void session_cgroup_save(struct saved *s);

/* The session is over: kills remaining processes, and removes its groups. */
void session_cgroup_close(const char *identity, uint64_t number);
