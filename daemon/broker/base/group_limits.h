/* SPDX-License-Identifier: ISC */
/*
 * Limits of sessions that only a control group can hold.
 */
#ifndef GROUP_LIMITS_H
#define GROUP_LIMITS_H

#include <stddef.h>

#include "identity.h"

/* What the groups of this host can hold: a mask of enum cgroup_controller. */
void group_limits_learn(unsigned controllers);

/* Can the sessions of every identity be held to their limits here? -EOPNOTSUPP,
 * and the log says which cannot. */
int group_limits_check(struct identity *const *identities, size_t n);

/* Why a session was not started: reason[256]. */
void group_limits_reason(const struct identity *id, char *reason);

#endif
