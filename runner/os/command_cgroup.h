/* SPDX-License-Identifier: ISC */
/*
 * Control groups of commands. Each command has one while it or anything it left
 * behind lives, so that all of it can be counted, limited and killed. The
 * groups are made below the session's group, and reused.
 */
#pragma once

#include "cgroup.h"
#include "queue.h"

/* How often the limits of a group took effect. */
struct command_cgroup_counts {
	uint64_t memory_kills, forks_denied;
};

/* Whose limit acted. */
enum cgroup_level {
	CGROUP_OF_COMMAND, /* its own; the smallest above it is that, too */
	CGROUP_OF_IDENTITY,
	CGROUP_OF_ALL,
	CGROUP_OF_MACHINE,
	CGROUP_LEVELS
};

struct group {
	TAILQ_ENTRY(group) link; /* cgroup_pool.free or .left */
	struct cgroup cgroup;
	int joins[CGROUP_HIERARCHIES];
	uint64_t oom_kills;		     /* kills reported already */
	struct command_cgroup_counts counts; /* counts reported already */
	uint64_t acted[2];		     /* as of the pool, of its own */
	unsigned number;		     /* part of its name */
	unsigned limits;		     /* which of the pool it has */
	bool killed;			     /* must not be used again */
};

TAILQ_HEAD(command_cgroup_list, group);

struct cgroup_pool {
	struct cgroup session;		 /* not open: the host gives none */
	struct command_cgroup_list free; /* groups that are empty */
	/* groups given back with a process in them */
	struct command_cgroup_list left;
	unsigned made;
	struct cgroup_limits limits; /* of each */
	unsigned changes;	     /* how often they changed */
	unsigned controllers;	     /* the controllers in force */
	/* version 2: how often the limits of memory and tasks of the groups
	 * above acted, as far as it is known here */
	uint64_t acted[CGROUP_LEVELS][2];
};

/* Takes over the directories of session. */
void cgroup_pool_init(struct cgroup_pool *pool, const struct cgroup *session,
    const struct cgroup_limits *limits);

/* The limits of groups for later commands. */
void cgroup_pool_limit(
    struct cgroup_pool *pool, const struct cgroup_limits *limits);

/* Returns a group, or NULL with errno. pool->session must be open. */
struct group *command_cgroup_take(struct cgroup_pool *pool);
/*
 * Tells whether a process in it was killed for lack of memory since the last
 * call.
 */
bool command_cgroup_ran_out_of_memory(struct group *g);

/* Tells which limit acted last, of CGROUP_COUNTS_MEMORY or _PIDS, if one did on
 * a process of the group. Version 1 does not tell, and blames the command's. */
enum cgroup_level command_cgroup_blame(
    struct cgroup_pool *pool, struct group *g, unsigned controller);

/* Returns what the limits did since the last call. */
struct command_cgroup_counts command_cgroup_counts(struct group *g);

/* Sends SIGKILL to all of it. Returns 0 or -errno. */
int command_cgroup_kill(struct group *g);

/*
 * If the group is empty, gives it back and returns true; then *g may be freed.
 */
bool command_cgroup_settle(struct cgroup_pool *pool, struct group *g);

/* Gives the group back, even if there are still processes in it. */
void command_cgroup_give_back(struct cgroup_pool *pool, struct group *g);
