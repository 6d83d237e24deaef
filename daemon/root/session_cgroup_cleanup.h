/* SPDX-License-Identifier: ISC */
/*
 * Control groups of an execd that was killed: it could not remove them, and
 * the next one that is started beside them does.
 */
#ifndef SESSION_CGROUP_CLEANUP_H
#define SESSION_CGROUP_CLEANUP_H

#include "cgroup.h"

/* Removes what is left below the group execd was started in, and in use by
 * nobody: the kernel keeps a group that has a process. */
void session_cgroup_cleanup(const struct cgroup *own);

/* Makes the group `name` below own and opens it as base (to be closed with
 * cgroup_close()); as long as this program runs, nobody cleans it up. Returns
 * 0, -EEXIST if another execd has it, -ENOENT if a cleanup has just removed it,
 * or what cgroup_make() does. */
int session_cgroup_claim(
    const struct cgroup *own, const char *name, struct cgroup *base);

/* Its locks, which are never closed: they are the program's. Or -1. */
extern int session_cgroup_locks[CGROUP_HIERARCHIES];

/* Removes the empty groups in a directory, and so many levels below. */
void session_cgroup_remove_children(int dir, int levels);

#endif
