/* SPDX-License-Identifier: ISC */
#include "command_cgroup.h"

/* How many groups of `left` are checked when a group is wanted. */
#define LOOK_AGAIN 4

static void remember_above(struct cgroup_pool *pool);

void
cgroup_pool_init(struct cgroup_pool *pool, const struct cgroup *session,
    const struct cgroup_limits *limits)
{
	*pool = (struct cgroup_pool){ .limits = *limits, .session = *session };
	TAILQ_INIT(&pool->free);
	TAILQ_INIT(&pool->left);
	pool->controllers = cgroup_controllers(session);
	if (session->dirs[CGROUP_UNIFIED] >= 0)
		remember_above(pool);
	/* In version 1, no group is made for a limit that is not set. */
	if (pool->limits.cpu_percent == 0 && pool->limits.cpu_weight == 0 &&
	    pool->session.dirs[CGROUP_CPU] >= 0) {
		close(pool->session.dirs[CGROUP_CPU]);
		pool->session.dirs[CGROUP_CPU] = -1;
		pool->controllers &= ~(unsigned)CGROUP_COUNTS_CPU;
	}
}

#define GROUP_NAME_MAX 32

static void
group_name(const struct group *g, char name[GROUP_NAME_MAX])
{
	snprintf(name, GROUP_NAME_MAX, "command-%u", g->number);
}

/*
 * After any error there is no group: no command runs with only a part of its
 * limits.
 */
static int
make(struct cgroup_pool *pool, struct group *g)
{
	unsigned wanted = pool->controllers;
	char name[GROUP_NAME_MAX];
	int err;

	if (pool->limits.cpu_percent == 0 && pool->limits.cpu_weight == 0)
		wanted &= ~(unsigned)CGROUP_COUNTS_CPU;
	g->number = pool->made++;
	g->limits = pool->changes;
	group_name(g, name);
	err = cgroup_make(&pool->session, name, &g->cgroup);
	if (err == 0)
		err = cgroup_limit(&g->cgroup, &pool->limits, wanted);
	if (err == 0)
		err = cgroup_open_joins(&g->cgroup, g->joins);
	if (err == 0)
		return 0;
	log_error(err, "control group %s of this session", name);
	cgroup_close(&g->cgroup);
	cgroup_remove(&pool->session, name);
	return err;
}

/* Reuses groups in `left` whose last process has ended. */
static void
collect(struct cgroup_pool *pool)
{
	struct group *g;

	for (int i = 0; i < LOOK_AGAIN; i++) {
		g = TAILQ_FIRST(&pool->left);
		if (g == NULL)
			return;
		TAILQ_REMOVE(&pool->left, g, link);
		/* Counts of what was left behind must not be told of the next
		 * command. */
		command_cgroup_counts(g);
		command_cgroup_give_back(pool, g);
	}
}

struct group *
command_cgroup_take(struct cgroup_pool *pool)
{
	struct group *g;
	int err;

	collect(pool);
	g = TAILQ_FIRST(&pool->free);
	if (g != NULL) {
		TAILQ_REMOVE(&pool->free, g, link);
		return g;
	}
	g = xcalloc(1, sizeof(*g));
	err = make(pool, g);
	if (err == 0)
		return g;
	free(g);
	errno = -err;
	return NULL;
}

/*
 * Returns the increase of a count since the last call. A count that cannot be
 * read now is 0.
 */
static uint64_t
rise(uint64_t *seen, uint64_t now)
{
	uint64_t before = *seen;

	if (now <= before)
		return 0;
	*seen = now;
	return now - before;
}

/* --- whose limit it was ----------------------------------------------------
 */

/* Seen from the session's group: its identity's, and that of all sessions. A
 * kernel without pids.events.local counts a refused fork in the group of who
 * forked, so the command's is blamed there. */
static const char *const above[CGROUP_LEVELS] = { NULL, "..", "../..", NULL };

static uint64_t
acted_in(const struct cgroup *c, const char *up, bool memory)
{
	static const char *const files[] = { "pids.events.local",
		"memory.events.local" };
	char path[64];

	snprintf(path, sizeof(path), "%s%s%s", up != NULL ? up : "",
	    up != NULL ? "/" : "", files[memory]);
	return cgroup_read_count(
	    c->dirs[CGROUP_UNIFIED], path, memory ? "oom" : "max");
}

static void
remember_above(struct cgroup_pool *pool)
{
	for (int level = CGROUP_OF_IDENTITY; level < CGROUP_OF_MACHINE; level++)
		for (int memory = 0; memory < 2; memory++)
			pool->acted[level][memory] =
			    acted_in(&pool->session, above[level], memory == 1);
}

enum cgroup_level
command_cgroup_blame(
    struct cgroup_pool *pool, struct group *g, unsigned controller)
{
	bool memory = controller == CGROUP_COUNTS_MEMORY;
	enum cgroup_level blamed = CGROUP_OF_MACHINE;

	if (g->cgroup.dirs[CGROUP_UNIFIED] < 0 ||
	    g->cgroup.dirs[memory ? CGROUP_MEMORY : CGROUP_PIDS] >= 0)
		return CGROUP_OF_COMMAND;
	for (int level = CGROUP_OF_ALL; level >= CGROUP_OF_IDENTITY; level--)
		if (rise(&pool->acted[level][memory],
			acted_in(&pool->session, above[level], memory)) > 0)
			blamed = level;
	if (rise(&g->acted[memory], acted_in(&g->cgroup, NULL, memory)) > 0 ||
	    (!memory && blamed == CGROUP_OF_MACHINE))
		blamed = CGROUP_OF_COMMAND;
	return blamed;
}

bool
command_cgroup_ran_out_of_memory(struct group *g)
{
	return rise(&g->oom_kills, cgroup_oom_kills(&g->cgroup)) > 0;
}

struct command_cgroup_counts
command_cgroup_counts(struct group *g)
{
	return (struct command_cgroup_counts){
		.memory_kills =
		    rise(&g->counts.memory_kills, cgroup_oom_kills(&g->cgroup)),
		.forks_denied = rise(
		    &g->counts.forks_denied, cgroup_forks_denied(&g->cgroup)),
	};
}

int
command_cgroup_kill(struct group *g)
{
	g->killed = true;
	return cgroup_kill(&g->cgroup);
}

/*
 * Removes a group that was killed, or has other limits. In version 1 no process
 * could fork in it any more. In version 2 some kernels kill each process that
 * is cloned into a group that was ever killed.
 */
static bool
discard(struct cgroup_pool *pool, struct group *g)
{
	char name[GROUP_NAME_MAX];

	group_name(g, name);
	if (cgroup_remove_tree(&pool->session, name) < 0)
		return false;
	cgroup_close_joins(g->joins);
	cgroup_close(&g->cgroup);
	free(g);
	return true;
}

bool
command_cgroup_settle(struct cgroup_pool *pool, struct group *g)
{
	if (!cgroup_is_empty(&g->cgroup))
		return false;
	/* What a command has made in it goes with it. */
	g->killed |= cgroup_is_nested(&g->cgroup);
	if (g->killed || g->limits != pool->changes)
		return discard(pool, g);
	TAILQ_INSERT_HEAD(&pool->free, g, link);
	return true;
}

void
command_cgroup_give_back(struct cgroup_pool *pool, struct group *g)
{
	if (!command_cgroup_settle(pool, g))
		TAILQ_INSERT_TAIL(&pool->left, g, link);
}

void
cgroup_pool_limit(struct cgroup_pool *pool, const struct cgroup_limits *limits)
{
	struct group *g;

	pool->limits = *limits;
	pool->changes++;
	while ((g = TAILQ_FIRST(&pool->free)) != NULL) {
		TAILQ_REMOVE(&pool->free, g, link);
		command_cgroup_give_back(pool, g);
	}
}
