/* SPDX-License-Identifier: ISC */
/*
 * Control groups (cgroups(7)), version 2 or the version 1 hierarchies that
 * count processes, memory and processor time: a directory each, by descriptor.
 */
#ifndef CGROUP_H
#define CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum cgroup_hierarchy {
	CGROUP_UNIFIED, /* version 2: everything, and cgroup.kill */
	CGROUP_PIDS,	/* version 1 */
	CGROUP_MEMORY,	/* version 1 */
	CGROUP_CPU,	/* version 1 */
	CGROUP_HIERARCHIES,
};

/* What a group can hold its members to: a mask. */
enum cgroup_controller {
	CGROUP_COUNTS_PIDS = 1 << 0,
	CGROUP_COUNTS_MEMORY = 1 << 1,
	CGROUP_COUNTS_CPU = 1 << 2,
};

struct cgroup_limits {
	uint64_t pids;	       /* 0: no limit; likewise below */
	uint64_t memory_bytes; /* with what is swapped out */
	uint32_t cpu_percent;  /* of one processor, in any tenth of a second */
	bool end_together;     /* version 2: whoever is out of memory takes all
				* others of the group along */
};

/* Directories of one group; -1 where the host has none. */
struct cgroup {
	int dirs[CGROUP_HIERARCHIES];
};

#define CGROUP_NONE                                                            \
	{                                                                      \
		{                                                              \
			-1, -1, -1, -1                                         \
		}                                                              \
	}

/* The group the caller is in. Unified only if it counts processes, or if there
 * is no version 1 hierarchy that does. */
void cgroup_open_own(struct cgroup *c);

/* The same, and of an ordinary user only what was delegated to him. */
void cgroup_open_usable(struct cgroup *c);

/* What there is of a group below another. */
void cgroup_open(
    const struct cgroup *parent, const char *name, struct cgroup *c);

/* A group below another. 0 or -errno; what exists already is opened. On error
 * nothing is left. cgroup_remove(): -EBUSY while somebody is in it; what is not
 * there is no error. */
int cgroup_make(
    const struct cgroup *parent, const char *name, struct cgroup *c);
int cgroup_remove(const struct cgroup *parent, const char *name);
void cgroup_close(struct cgroup *c);
bool cgroup_is_open(const struct cgroup *c);

/* For a message: the directories there are, in order, and a bit for each
 * enum cgroup_hierarchy of them. How many. */
size_t cgroup_put(
    const struct cgroup *c, uint8_t *hierarchies, int dirs[CGROUP_HIERARCHIES]);

/* From one: the directories are taken over. 0, or -EBADMSG when there are not
 * as many as bits; then none are. */
int cgroup_get(
    struct cgroup *c, uint8_t hierarchies, const int *dirs, size_t n);

/* Which limits groups below can have once all that is here is handed down. */
unsigned cgroup_available(const struct cgroup *c);

/* Which limits a group below this one can have. */
unsigned cgroup_controllers(const struct cgroup *parent);

/* Version 2: groups below may have limits. 0; -EBUSY while this one has
 * members of its own (the "no internal process" rule); or another -errno. */
int cgroup_hand_down(const struct cgroup *c);

/* Sets those limits of a new group that `controllers` can hold; it has no
 * others. 0, then they are in force; or -errno. */
int cgroup_limit(const struct cgroup *c, const struct cgroup_limits *l,
    unsigned controllers);

/* Files by which a process joins ("0" is whoever writes), O_WRONLY, the
 * caller's to close; -1 only where the group has no such directory. 0 or
 * -errno, then all are -1. In version 1 joining costs microseconds, in version
 * 2 it may wait for a grace period of the kernel. */
int cgroup_open_joins(const struct cgroup *c, int joins[CGROUP_HIERARCHIES]);
void cgroup_close_joins(int joins[CGROUP_HIERARCHIES]);

/* born: in the version 2 group already. Only system calls. 0 or -errno. */
int cgroup_join(const int joins[CGROUP_HIERARCHIES], bool born);

/* SIGKILL to everything in it, forks included. 0 or -errno. */
int cgroup_kill(const struct cgroup *c);

/* Processes of it that were killed for want of memory, ever: at once, or from
 * a file that stays open (-errno: there is none). */
uint64_t cgroup_oom_kills(const struct cgroup *c);
int cgroup_open_oom(const struct cgroup *c);
uint64_t cgroup_read_oom(int fd);

/* Processes it was denied because there were too many, ever. */
uint64_t cgroup_forks_denied(const struct cgroup *c);

/* Is nobody in it? */
bool cgroup_is_empty(const struct cgroup *c);

#endif
