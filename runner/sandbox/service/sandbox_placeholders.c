/* SPDX-License-Identifier: ISC */
/*
 * The placeholders of a sandbox. They are made and covered before its first
 * process. They are given up a moment after the last user, so that successive
 * commands need not make them again.
 */
#include <event2/event.h>
#include <stdlib.h>

#include "log.h"
#include "loop.h"
#include "sandbox.h"
#include "util.h"

/*
 * Short, because programs without a policy see the placeholders among their
 * files.
 */
#define LINGER_MS 100

static void
leave(struct sandbox *n)
{
	event_del(&n->linger);
	for (size_t i = 0; i < n->nplaceholders; i++)
		placeholder_leave(&n->placeholders[i]);
	n->covered = false;
}

static void
linger_cb(evutil_socket_t fd, short what, void *arg)
{
	leave(arg);
}

void
sandbox_placeholders_init(struct sandbox *n)
{
	const struct plan *plan = &n->plan;

	event_assign(&n->linger, n->pool->base, -1, 0, linger_cb, n);
	n->placeholders = xcalloc(plan->count, sizeof(*n->placeholders));
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_mount *m = &plan->mounts[i];

		if (plan_is_placeholder(m))
			n->placeholders[n->nplaceholders++] =
			    (struct placeholder){ .path = m->path,
				    .directory =
					m->kind == PLAN_PLACEHOLDER_DIRECTORY,
				    .fd = -1 };
	}
}

void
sandbox_placeholders_clear(struct sandbox *n)
{
	if (n->placeholders == NULL)
		return;
	leave(n);
	free(n->placeholders);
	n->placeholders = NULL;
}

/*
 * Both lists are in the order of the plan. A placeholder that this user could
 * not make does not exist and is skipped.
 */
bool
sandbox_placeholders_match(const struct sandbox *n, const struct plan *plan)
{
	size_t next = 0;

	for (size_t i = 0; n->covered && i < plan->count; i++) {
		const struct fs_node *now = &plan->mounts[i].seen;
		const struct placeholder *m;

		if (!plan_is_placeholder(&plan->mounts[i]))
			continue;
		m = &n->placeholders[next++];
		if (m->fd >= 0 && (now->device != m->seen.device ||
				      now->inode != m->seen.inode))
			return false;
	}
	return true;
}

static void
note(struct sandbox *n)
{
	struct sandbox_pool *pool = n->pool;

	if (n->noted || pool->note == NULL)
		return;
	pool->key = pool->note(pool->owner, n->placeholders, n->nplaceholders);
	n->noted = true;
}

static int
take_and_cover(struct sandbox *n)
{
	struct sandbox_answer a;
	struct buf b;
	int err = 0;

	note(n);
	for (size_t i = 0; i < n->nplaceholders && err == 0; i++) {
		err = placeholder_take(&n->placeholders[i], n->pool->key);
		if (err < 0)
			log_error(
			    err, "sandbox: making %s", n->placeholders[i].path);
	}
	if (err < 0)
		return err;
	buf_init(&b, SANDBOX_MESSAGE_MAX);
	sandbox_cover_put(&b, n->placeholders, n->nplaceholders);
	err = sandbox_ask(n, &b, NULL, 0, &a);
	if (err < 0)
		log_error(err, "sandbox: %s", a.step);
	return err;
}

int
sandbox_use(struct sandbox *n)
{
	int err = 0;

	event_del(&n->linger);
	if (n->nplaceholders > 0 && !n->covered)
		err = take_and_cover(n);
	if (err < 0) {
		leave(n);
		return err;
	}
	n->covered = n->nplaceholders > 0;
	n->users++;
	return 0;
}

void
sandbox_release(struct sandbox *n)
{
	const struct timeval linger = { .tv_usec = LINGER_MS * 1000 };

	if (--n->users == 0 && n->covered)
		loop_add(&n->linger, &linger);
}

void
sandbox_pool_unmask(struct sandbox_pool *pool, const struct sandbox *n)
{
	struct sandbox *other;

	TAILQ_FOREACH (other, &pool->sandboxes, link)
		if (other != n && other->users == 0 && other->covered)
			leave(other);
}
