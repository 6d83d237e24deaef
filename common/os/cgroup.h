/* SPDX-License-Identifier: ISC */
/*
 * Control groups (cgroups(7)): version 2, or the version 1 hierarchies for
 * processes, memory and processor time. Each is a directory that is held as a
 * descriptor.
 */
#pragma once

#include "base.h"

enum cgroup_hierarchy {
	CGROUP_UNIFIED, /* version 2: everything, and cgroup.kill */
	CGROUP_PIDS,	/* version 1 */
	CGROUP_MEMORY,	/* version 1 */
	CGROUP_CPU,	/* version 1 */
	CGROUP_HIERARCHIES,
};

/* What a group can limit; a mask. */
enum cgroup_controller {
	CGROUP_COUNTS_PIDS = 1 << 0,
	CGROUP_COUNTS_MEMORY = 1 << 1,
	CGROUP_COUNTS_CPU = 1 << 2,
	CGROUP_COUNTS_IO = 1 << 3, /* version 2 */
};

/* In version 2 a session's user may make groups below that of the session. The
 * kernel permits at most so many of them, and so many levels. */
#define CGROUP_BELOW	  "8192"
#define CGROUP_DEPTH	  "16"
#define CGROUP_LEVELS_MAX 16 /* the same */

struct cgroup_limits {
	uint64_t pids; /* 0: no limit; the same for the fields below */
	uint64_t memory_bytes;
	bool may_swap;	      /* what is swapped out does not count as memory */
	uint32_t cpu_percent; /* of one processor, in each tenth of a second */
	/* shares among the groups beside it, from 1 to 10000; of io only in
	 * version 2 */
	uint32_t cpu_weight, io_weight;
	/* version 2: when memory runs out, all members are killed */
	bool end_together;
	/* the group may have had others: what is 0 is taken back */
	bool again;
};

/* The directories of one group; -1 where the host has no such hierarchy. */
struct cgroup {
	int dirs[CGROUP_HIERARCHIES];
};

#define CGROUP_NONE                                                            \
	{                                                                      \
		{                                                              \
			-1, -1, -1, -1                                         \
		}                                                              \
	}

/* Opens the group of the calling process. The version 2 directory is opened
 * only if it counts processes, or if no version 1 hierarchy counts them. */
void cgroup_open_own(struct cgroup *c);

/* The same, but only directories in which this user may make groups. Returns 0,
 * or why there is none: -ENOENT (no hierarchy is mounted), -EROFS, or -EACCES
 * (none was delegated to him). */
int cgroup_open_usable(struct cgroup *c);

/*
 * cgroup_make() creates and opens a group below another one. A group that
 * exists is opened. Returns 0 or -errno; on error nothing is left.
 * cgroup_remove() returns 0 or -errno: -EBUSY while the group has members. A
 * group that does not exist is no error.
 */
int cgroup_make(
    const struct cgroup *parent, const char *name, struct cgroup *c);
int cgroup_remove(const struct cgroup *parent, const char *name);
void cgroup_close(struct cgroup *c);

/* Removes a group and the empty groups in it. Returns as cgroup_remove().
 * cgroup_remove_below() removes those in the group of that directory. */
int cgroup_remove_tree(const struct cgroup *parent, const char *name);
void cgroup_remove_below(int dir);

/* Opens a group below that one in its hierarchy. Returns a descriptor, which is
 * the caller's, or -errno. */
int cgroup_open_in(int dir, const char *name);

static inline bool
cgroup_is_open(const struct cgroup *c)
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (c->dirs[i] >= 0)
			return true;
	return false;
}

/* For sending a group in a message: fills `dirs` with its open directories, in
 * order, and sets a bit in *hierarchies for each enum cgroup_hierarchy among
 * them. Returns their number. The descriptors stay those of c. */
size_t cgroup_put(
    const struct cgroup *c, uint8_t *hierarchies, int dirs[CGROUP_HIERARCHIES]);

/* The reverse, for a received message. The descriptors now belong to c. Returns
 * 0, or -EBADMSG if their number does not match the bits; then they stay the
 * caller's. */
int cgroup_get(
    struct cgroup *c, uint8_t hierarchies, const int *dirs, size_t n);

/* Returns which limits groups below could have after cgroup_hand_down(). */
unsigned cgroup_available(const struct cgroup *c);

/* Returns which limits a group below this one can have now. */
unsigned cgroup_controllers(const struct cgroup *parent);

/* Version 2: permits limits in groups below this one, by one write for all
 * controllers: a group with members takes one of them alone and is of no use
 * then (cgroup_claim.c). Returns 0 or -errno, and then nothing is handed down.
 */
int cgroup_hand_down(const struct cgroup *c);

/* The reverse. */
int cgroup_take_back(const struct cgroup *c);

/* Sets the limits of a new group, as far as `controllers` permits. Returns 0
 * when they are in force, or -errno. */
int cgroup_limit(const struct cgroup *c, const struct cgroup_limits *l,
    unsigned controllers);

/*
 * Opens the files through which a process joins the group, for writing: a
 * process that writes "0" joins. An entry is -1 only where the group has no
 * such directory. The caller closes them with cgroup_close_joins(). Returns 0,
 * or -errno with every entry -1. Joining takes microseconds in version 1; in
 * version 2 it may wait for a grace period of the kernel.
 */
int cgroup_open_joins(const struct cgroup *c, int joins[CGROUP_HIERARCHIES]);
void cgroup_close_joins(int joins[CGROUP_HIERARCHIES]);

/* Moves the calling process into the group. `born` means that it is in the
 * version 2 group already. Makes only system calls. Returns 0 or -errno. */
int cgroup_join(const int joins[CGROUP_HIERARCHIES], bool born);

/* Kills all members with SIGKILL, including those that fork meanwhile. Returns
 * 0 or -errno. */
int cgroup_kill(const struct cgroup *c);

/* Counts the processes of the group that were ever killed because memory ran
 * out. cgroup_open_oom() opens the file for repeated use and returns a
 * descriptor, which is the caller's, or -errno. */
uint64_t cgroup_oom_kills(const struct cgroup *c);
int cgroup_open_oom(const struct cgroup *c);
uint64_t cgroup_read_oom(int fd);

/*
 * The same for the caller's own cgroup. The first call opens the file, which
 * stays open.
 */
uint64_t cgroup_own_oom_kills(void);

/* Reads N from a line "KEY N" of a file of the group; 0 if there is none. */
uint64_t cgroup_read_count(int dir, const char *name, const char *key);

/* Counts the forks that were ever refused because of the limit of processes. */
uint64_t cgroup_forks_denied(const struct cgroup *c);

/* Returns true if the group has no members; those of groups in it do not count.
 */
bool cgroup_is_empty(const struct cgroup *c);

/* Returns true if a member has made groups in the group. */
bool cgroup_is_nested(const struct cgroup *c);
