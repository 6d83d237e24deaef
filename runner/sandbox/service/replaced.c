/* SPDX-License-Identifier: ISC */
/*
 * Notices when somebody outside puts another file under a name that a policy
 * protects. A mount lies on a file, not on its name: when the file is removed
 * or another is renamed over it, the kernel detaches the mount in every view,
 * and the commands there see the new file. The runner watches the directories
 * of such names with inotify(7), and asks the sandbox whether its view is
 * intact.
 */
#include <event2/event.h>
#include <sys/inotify.h>

#include "base.h"
#include "loop.h"
#include "sandbox.h"

#define EVENTS_BYTES 8192

/* As long as nothing is there, nothing can be read: a removal alone is no
 * event. */
#define EVENTS (IN_CREATE | IN_MOVED_TO)

static void
tell_unwatched(struct sandbox_pool *pool, int err, const char *path)
{
	if (pool->told_unwatched)
		return;
	pool->told_unwatched = true;
	log_warn(err,
	    "sandbox: %s is not watched, nor may others of this session be "
	    "(at most %d directories are): a file that is put there while a "
	    "command runs can be read by it",
	    path, SANDBOX_WATCHES_MAX);
}

/* Returns where the last name of an absolute path begins. */
static const char *
last_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

/* Tells whether a policy restricts the name, on a disk of the host. */
static bool
is_protected(const struct plan_mount *m)
{
	return (m->kind == PLAN_READ || m->kind == PLAN_DENY_DIRECTORY ||
		   m->kind == PLAN_DENY_FILE || m->kind == PLAN_PIN) &&
	       (m->seen.type != FS_LINK || m->kind == PLAN_PIN) &&
	       strcmp(m->path, "/") != 0 && !plan_is_own_dev(m) &&
	       !path_lies_in(m->path, "/proc") &&
	       !path_lies_in(m->path, "/sys");
}

static bool
has_room(const struct sandbox_pool *pool)
{
	const struct sandbox *n;
	size_t used = 0;

	TAILQ_FOREACH (n, &pool->sandboxes, link)
		used += n->nwatches;
	return used < SANDBOX_WATCHES_MAX;
}

void
sandbox_watch(struct sandbox *n)
{
	struct sandbox_pool *pool = n->pool;
	int last = 0;

	if (pool->changes_fd < 0)
		return;
	n->watches = xcalloc(n->plan.count + 1, sizeof(*n->watches));
	for (size_t i = 0; i < n->plan.count; i++) {
		const char *path = n->plan.mounts[i].path;
		_cleanup_free_ char *parent = NULL;
		int err = has_room(pool) ? 0 : -ENOSPC;

		if (!is_protected(&n->plan.mounts[i]))
			continue;
		parent = xstrndup(path, (size_t)(last_name(path) - path));
		if (err == 0)
			n->watches[i] = inotify_add_watch(pool->changes_fd,
			    parent, EVENTS | IN_ONLYDIR | IN_EXCL_UNLINK);
		if (err == 0 && n->watches[i] < 0)
			err = -errno;
		/* Names in one directory follow each other in a plan. */
		n->nwatches += err == 0 && n->watches[i] != last;
		last = err == 0 ? n->watches[i] : last;
		if (err < 0)
			tell_unwatched(pool, err, path);
	}
}

static bool
watches(const struct sandbox *n, int wd)
{
	for (size_t i = 0; n->watches != NULL && i < n->plan.count; i++)
		if (n->watches[i] == wd)
			return true;
	return false;
}

void
sandbox_unwatch(struct sandbox *n)
{
	const struct sandbox *other;

	for (size_t i = 0; n->watches != NULL && i < n->plan.count; i++) {
		int wd = n->watches[i];
		bool shared = wd <= 0;

		n->watches[i] = 0;
		TAILQ_FOREACH (other, &n->pool->sandboxes, link)
			shared = shared || watches(other, wd);
		if (!shared)
			inotify_rm_watch(n->pool->changes_fd, wd);
	}
	free(n->watches);
	n->watches = NULL;
}

/* Returns a protected path that has another file now, perhaps; or NULL. Without
 * a name each may have. */
static const char *
find_changed(const struct sandbox *n, const struct inotify_event *e)
{
	struct stat st;

	for (size_t i = 0; n->watches != NULL && i < n->plan.count; i++) {
		const char *path = n->plan.mounts[i].path;

		if (n->watches[i] > 0 &&
		    (e->mask & IN_Q_OVERFLOW ||
			(n->watches[i] == e->wd && e->len > 0 &&
			    strcmp(last_name(path), e->name) == 0)) &&
		    lstat(path, &st) == 0)
			return path;
	}
	return NULL;
}

static void
take_event(struct sandbox_pool *pool, const struct inotify_event *e)
{
	struct sandbox *n;

	TAILQ_FOREACH (n, &pool->sandboxes, link) {
		const char *path =
		    n->users > 0 && !n->replaced ? find_changed(n, e) : NULL;

		if (path == NULL || sandbox_is_intact(n))
			continue;
		n->replaced = true;
		pool->on_replaced(pool->owner, n, path);
	}
}

static void
changed_cb(evutil_socket_t fd, short what, void *arg)
{
	_Alignas(struct inotify_event) char events[EVENTS_BYTES];
	ssize_t n = read(fd, events, sizeof(events)), at = 0;

	while (at < n) {
		const struct inotify_event *e =
		    (const struct inotify_event *)(const void *)(events + at);

		take_event(arg, e);
		at += (ssize_t)(sizeof(*e) + e->len);
	}
}

void
sandbox_pool_watch(struct sandbox_pool *pool)
{
	if (pool->changes_fd >= 0 || pool->on_replaced == NULL)
		return;
	pool->changes_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (pool->changes_fd < 0) {
		tell_unwatched(pool, -errno, "what a policy protects");
		return;
	}
	pool->changed = event_new(pool->base, pool->changes_fd,
	    EV_READ | EV_PERSIST, changed_cb, pool);
	if (pool->changed == NULL)
		log_fatal("sandbox: out of memory");
	loop_add(pool->changed, NULL);
}
