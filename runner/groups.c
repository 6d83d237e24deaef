/*
 * Control groups of commands.
 */
#include "groups.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "util.h"

/* Left ones that are looked at again when a group is wanted. */
#define LOOK_AGAIN 4

void
group_pool_init(struct group_pool *pool, const struct cgroup *session,
    uint64_t pids, uint64_t memory_bytes)
{
	*pool = (struct group_pool){
		.session = *session, .pids = pids, .memory_bytes = memory_bytes
	};
	TAILQ_INIT(&pool->free);
	TAILQ_INIT(&pool->left);
}

static int
make(struct group_pool *pool, struct group *g)
{
	char name[32];
	int err;

	snprintf(name, sizeof(name), "command-%u", pool->made++);
	err = cgroup_make(&pool->session, name, &g->cgroup);
	if (err == 0)
		err = cgroup_limit(&g->cgroup, pool->pids, pool->memory_bytes);
	if (err == 0)
		cgroup_open_joins(&g->cgroup, g->joins);
	else
		cgroup_close(&g->cgroup);
	return err;
}

/* Those whose last process ended meanwhile. */
static void
collect(struct group_pool *pool)
{
	struct group *g;

	for (int i = 0; i < LOOK_AGAIN; i++) {
		g = TAILQ_FIRST(&pool->left);
		if (g == NULL)
			return;
		TAILQ_REMOVE(&pool->left, g, link);
		group_give_back(pool, g);
	}
}

struct group *
group_take(struct group_pool *pool)
{
	struct group *g;
	int err;

	errno = 0;
	if (!cgroup_is_open(&pool->session))
		return NULL;
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

bool
group_ran_out_of_memory(struct group *g)
{
	uint64_t kills = cgroup_oom_kills(&g->cgroup);
	bool more = kills > g->oom_kills;

	g->oom_kills = kills;
	return more;
}

struct group_counts
group_counts(struct group *g)
{
	struct group_counts before = g->counts;

	g->counts =
	    (struct group_counts){ .memory_kills = cgroup_oom_kills(&g->cgroup),
		    .forks_denied = cgroup_forks_denied(&g->cgroup) };
	return (struct group_counts){
		.memory_kills = g->counts.memory_kills - before.memory_kills,
		.forks_denied = g->counts.forks_denied - before.forks_denied,
	};
}

/* What was killed may not fork any more: the limit is set anew. */
void
group_give_back(struct group_pool *pool, struct group *g)
{
	/* What was left behind is none of the next command's. */
	if (pool->counted)
		group_counts(g);
	if (cgroup_is_empty(&g->cgroup) &&
	    cgroup_limit(&g->cgroup, pool->pids, pool->memory_bytes) == 0)
		TAILQ_INSERT_HEAD(&pool->free, g, link);
	else
		TAILQ_INSERT_TAIL(&pool->left, g, link);
}
