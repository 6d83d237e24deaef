/*
 * Control groups of an execd that was killed: it could not remove them, and
 * the next one that is started beside them does.
 */
#ifndef QUOTA_SWEEP_H
#define QUOTA_SWEEP_H

#include "cgroup.h"

/* Removes what is left below the group execd was started in, and in use by
 * nobody: the kernel keeps a group that has a process. */
void quota_sweep(const struct cgroup *own);

/* As long as this program runs, nobody sweeps that one. */
void quota_mark_used(const struct cgroup *base);

/* Removes the empty groups in a directory, and so many levels below. */
void quota_remove_children(int dir, int levels);

#endif
