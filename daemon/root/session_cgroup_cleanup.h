/* SPDX-License-Identifier: ISC */
/*
 * Control groups of an execd that was killed. It could not remove them, so the
 * next execd that is started beside them does.
 */
#ifndef SESSION_CGROUP_CLEANUP_H
#define SESSION_CGROUP_CLEANUP_H

#include "cgroup.h"

/* Removes groups below the one that execd was started in that nobody uses. The
 * kernel keeps a group that has a process. */
void session_cgroup_cleanup(const struct cgroup *own);

/* Makes the group `name` below own and opens it as base, to be closed with
 * cgroup_close(). Nobody cleans it up as long as base is open. Returns 0,
 * -EEXIST if another execd has it, -ENOENT if a cleanup has just removed it, or
 * an error of cgroup_make(). */
int session_cgroup_claim(
    const struct cgroup *own, const char *name, struct cgroup *base);

/* Removes a group and the groups in it, which must be empty. Returns as
 * cgroup_remove(). */
int session_cgroup_remove(const struct cgroup *parent, const char *name);

#endif
