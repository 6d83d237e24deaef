/* SPDX-License-Identifier: ISC */
/*
 * Control groups of commands: one each while the command or anything it left
 * behind lives, so that all of it can be counted, limited and killed. They are
 * made below the session's, and used again.
 */
#ifndef COMMAND_CGROUP_H
#define COMMAND_CGROUP_H

#include "cgroup.h"
#include "queue.h"

/* What a group's limits did. */
struct command_cgroup_counts {
	uint64_t memory_kills, forks_denied;
};

struct group {
	TAILQ_ENTRY(group) link; /* cgroup_pool.free or .left */
	struct cgroup cgroup;
	int joins[CGROUP_HIERARCHIES];
	uint64_t oom_kills;		     /* told of already */
	struct command_cgroup_counts counts; /* likewise; of pool.counted */
	unsigned number;		     /* in its name */
	bool killed;			     /* and not to be used again */
};

TAILQ_HEAD(command_cgroup_list, group);

struct cgroup_pool {
	struct cgroup session;		 /* none: the host gives none */
	struct command_cgroup_list free; /* empty */
	struct command_cgroup_list left; /* given back with somebody in it */
	unsigned made;
	struct cgroup_limits limits; /* of each */
	unsigned controllers;	     /* which of them are in force */
	bool counted; /* somebody asks for command_cgroup_counts() */
};

/* The directories are taken over. */
void cgroup_pool_init(struct cgroup_pool *pool, const struct cgroup *session,
    const struct cgroup_limits *limits);

/* NULL with errno 0: there are none here; with another errno: it failed. */
struct group *command_cgroup_take(struct cgroup_pool *pool);
/* Was somebody in it killed for want of memory since this was asked last? */
bool command_cgroup_ran_out_of_memory(struct group *g);

/* What the limits did since this was asked last. */
struct command_cgroup_counts command_cgroup_counts(struct group *g);

/* SIGKILL to all of it. 0 or -errno. */
int command_cgroup_kill(struct group *g);

/* Gives it back if nobody is in it any more; then it may be gone. */
bool command_cgroup_settle(struct cgroup_pool *pool, struct group *g);

/* Whoever is in it. */
void command_cgroup_give_back(struct cgroup_pool *pool, struct group *g);

#endif
