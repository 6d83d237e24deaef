/* SPDX-License-Identifier: ISC */
/*
 * The host's mounts that views show. A view has copies of those that were there
 * when it was built: a later one is missing in it, and one that was unmounted
 * is kept by it, so that its device stays busy. The sandbox of such a view is
 * outdated. It goes on for who is in it, whose servers later commands of the
 * policy reach there; then it is let go, and the next command has a new one.
 *
 * The mount table tells each change once (proc_pid_mounts(5)): the loop hears
 * it, and each request asks (slow_paths_now()). Where nobody passes the host's
 * mounts on to the mount namespace of the session, as in containers, none is
 * heard of.
 */
#include <event2/event.h>

#include "base.h"
#include "loop.h"
#include "sandboxes.h"
#include "slow_paths.h"

#define TABLE "/proc/self/mountinfo"

/* Several changes come together, as do the ends of several commands. */
#define TIDY_MS 500

static void
clear_table(struct sandbox_mounts *t)
{
	for (size_t i = 0; i < t->count; i++) {
		free(t->all[i].root);
		free(t->all[i].point);
	}
	free(t->all);
	t->all = NULL;
	t->count = 0;
}

/* What lies where the user does not get to is in no command's sight. */
static bool
is_reached(const char *point)
{
	size_t len = (size_t)(strrchr(point, '/') - point);
	_cleanup_free_ char *parent = xasprintf("%.*s/.", (int)len, point);

	return slow_mounts_have(slow_paths_now(), parent) ||
	       access(parent, X_OK) == 0;
}

static bool
is_own(const char *point)
{
	static const char *const names[] = { "/dev", "/proc", "/sys" };

	for (size_t i = 0; i < nitems(names); i++)
		if (path_lies_in(point, names[i]))
			return true;
	return false;
}

static void
take_change(struct sandbox_pool *pool, const char *point)
{
	struct sandbox *n;

	if (is_own(point) || !is_reached(point))
		return;
	TAILQ_FOREACH (n, &pool->sandboxes, link)
		n->outdated |= !n->landlock_only &&
			       plan_access(&n->plan, point) != SANDBOX_DENY;
	sandbox_pool_tidy(pool);
}

static bool
has_mount(const struct sandbox_mounts *t, const struct fs_mount *m)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->all[i].id == m->id && t->all[i].device == m->device &&
		    strcmp(t->all[i].point, m->point) == 0)
			return true;
	return false;
}

static void
compare(struct sandbox_pool *pool, const struct sandbox_mounts *a,
    const struct sandbox_mounts *b)
{
	for (size_t i = 0; i < a->count; i++)
		if (!has_mount(b, &a->all[i]))
			take_change(pool, a->all[i].point);
}

static void
read_table(struct sandbox_pool *pool)
{
	struct sandbox_mounts *old = &pool->mounts, now = *old;
	int err;

	now.all = NULL;
	now.count = 0;
	err = disk_view.mounts(NULL, &now.all, &now.count);
	if (err < 0) {
		log_warn(err, "sandbox: the mount table");
		return;
	}
	if (old->count > 0) {
		compare(pool, old, &now);
		compare(pool, &now, old);
	}
	clear_table(old);
	*old = now;
}

static void
changed_cb(evutil_socket_t fd, short what, void *arg)
{
	read_table(arg);
}

static void
tidy_cb(evutil_socket_t fd, short what, void *arg)
{
	sandbox_pool_let_go(arg);
}

/* Each open file tells each change once, so the loop has one of its own. */
static void
begin(struct sandbox_pool *pool)
{
	struct sandbox_mounts *t = &pool->mounts;

	t->tidy = evtimer_new(pool->base, tidy_cb, pool);
	if (event_base_get_features(pool->base) & EV_FEATURE_ET)
		t->watched = open(TABLE, O_RDONLY | O_CLOEXEC);
	if (t->watched >= 0)
		t->changed = event_new(pool->base, t->watched,
		    EV_READ | EV_PERSIST | EV_ET, changed_cb, pool);
	if (t->tidy == NULL || (t->watched >= 0 && t->changed == NULL))
		log_fatal("sandbox: out of memory");
	if (t->watched >= 0)
		loop_add(t->changed, NULL);
}

void
sandbox_pool_look(struct sandbox_pool *pool)
{
	struct sandbox_mounts *t = &pool->mounts;
	unsigned changes = slow_paths_changes();

	if (t->tidy == NULL)
		begin(pool);
	if (t->count == 0 || t->changes != changes)
		read_table(pool);
	t->changes = changes;
}

void
sandbox_pool_tidy(struct sandbox_pool *pool)
{
	if (pool->mounts.tidy != NULL &&
	    !event_pending(pool->mounts.tidy, EV_TIMEOUT, NULL))
		loop_add_ms(pool->mounts.tidy, TIDY_MS);
}

void
sandbox_mounts_init(struct sandbox_mounts *t)
{
	*t = (struct sandbox_mounts){ .watched = -1 };
}

void
sandbox_mounts_clear(struct sandbox_mounts *t)
{
	clear_table(t);
	if (t->changed != NULL)
		event_free(t->changed);
	if (t->tidy != NULL)
		event_free(t->tidy);
	if (t->watched >= 0)
		close(t->watched);
	sandbox_mounts_init(t);
}
