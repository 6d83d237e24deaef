/* SPDX-License-Identifier: ISC */
/*
 * Limits of sessions that only a control group can enforce.
 */
#ifndef GROUP_LIMITS_H
#define GROUP_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

#include "identity.h"

/* Sets what the control groups of this host can limit: a mask of enum
 * cgroup_controller. */
void group_limits_learn(unsigned controllers);

/* Logs which limits sessions cannot have here, and what takes their place. */
void group_limits_log(bool root);

/* Checks whether the limits of every identity's sessions can be enforced here.
 * If not, returns -EOPNOTSUPP after logging which cannot. */
int group_limits_check(struct identity *const *identities, size_t n);

/* Writes to reason[256] why a session was not started. */
void group_limits_reason(const struct identity *id, char *reason);

#endif
