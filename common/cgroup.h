/*
 * Control groups (cgroups(7)), version 2 or the version 1 hierarchies that
 * count processes and memory: a directory each, by descriptor.
 */
#ifndef CGROUP_H
#define CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum cgroup_hierarchy {
	CGROUP_UNIFIED, /* version 2: everything, and cgroup.kill */
	CGROUP_PIDS,	/* version 1 */
	CGROUP_MEMORY,	/* version 1 */
	CGROUP_HIERARCHIES,
};

/* Directories of one group; -1 where the host has none. */
struct cgroup {
	int dirs[CGROUP_HIERARCHIES];
};

#define CGROUP_NONE                                                            \
	{                                                                      \
		{                                                              \
			-1, -1, -1                                             \
		}                                                              \
	}

/* The group the caller is in. Unified only if it counts processes, or if there
 * is no version 1 hierarchy that does. */
void cgroup_open_own(struct cgroup *c);

/* A group below another. 0 or -errno; what exists already is opened. On error
 * nothing is left. */
int cgroup_make(
    const struct cgroup *parent, const char *name, struct cgroup *c);
void cgroup_remove(const struct cgroup *parent, const char *name);
void cgroup_close(struct cgroup *c);
bool cgroup_is_open(const struct cgroup *c);

/* 0: no limit. 0 or -errno; a hierarchy that the host lacks is no error. */
int cgroup_limit(const struct cgroup *c, uint64_t pids, uint64_t memory_bytes);

/* Files by which a process joins ("0" is whoever writes), O_WRONLY; -1: none.
 * In version 1 that costs microseconds, in version 2 it may wait for a grace
 * period of the kernel. */
void cgroup_open_joins(const struct cgroup *c, int joins[CGROUP_HIERARCHIES]);

/* Only system calls. 0 or -errno. */
int cgroup_join(const int joins[CGROUP_HIERARCHIES]);

/* SIGKILL to everything in it, forks included. 0 or -errno. */
int cgroup_kill(const struct cgroup *c);

/* Processes of it that were killed for want of memory, ever. */
uint64_t cgroup_oom_kills(const struct cgroup *c);

/* Processes it was denied because there were too many, ever. */
uint64_t cgroup_forks_denied(const struct cgroup *c);

/* Is nobody in it? */
bool cgroup_is_empty(const struct cgroup *c);

#endif
