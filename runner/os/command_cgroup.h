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
struct group_counts {
	uint64_t memory_kills, forks_denied;
};

struct group {
	TAILQ_ENTRY(group) link; /* group_pool.free or .left */
	struct cgroup cgroup;
	int joins[CGROUP_HIERARCHIES];
	uint64_t oom_kills;	    /* told of already */
	struct group_counts counts; /* likewise; of pool.counted */
	unsigned number;	    /* in its name */
	bool killed;		    /* and not to be used again */
};

TAILQ_HEAD(group_list, group);

struct group_pool {
	struct cgroup session;	/* none: the host gives none */
	struct group_list free; /* empty */
	struct group_list left; /* given back with somebody in it */
	unsigned made;
	struct cgroup_limits limits; /* of each */
	unsigned controllers;	     /* which of them are in force */
	bool counted;		     /* somebody asks for group_counts() */
};

/* The directories are taken over. */
void group_pool_init(struct group_pool *pool, const struct cgroup *session,
    const struct cgroup_limits *limits);

/* NULL with errno 0: there are none here; with another errno: it failed. */
struct group *group_take(struct group_pool *pool);
/* Was somebody in it killed for want of memory since this was asked last? */
bool group_ran_out_of_memory(struct group *g);

/* What the limits did since this was asked last. */
struct group_counts group_counts(struct group *g);

/* SIGKILL to all of it. 0 or -errno. */
int group_kill(struct group *g);

/* Gives it back if nobody is in it any more; then it may be gone. */
bool group_settle(struct group_pool *pool, struct group *g);

/* Whoever is in it. */
void group_give_back(struct group_pool *pool, struct group *g);

#endif
