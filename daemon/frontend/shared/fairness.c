/* SPDX-License-Identifier: ISC */
/*
 * Decides which connection may come in next.
 */
#include "fairness.h"

void
fair_source_init(struct fair_source *s)
{
	*s = (struct fair_source){ .waiting = 0 };
	TAILQ_INIT(&s->waiters);
}

/* After a reload, more slots may be taken than the new maximum. */
static bool
may_take(const struct fairness *f, const struct fair_source *s, size_t max)
{
	return f->slots < max && s->slots < max - f->slots;
}

static void
take(struct fairness *f, struct fair_source *s)
{
	f->slots++;
	s->slots++;
}

bool
fairness_enter(struct fairness *f, struct fair_source *s, size_t max)
{
	if (s->waiting > 0 || !may_take(f, s, max))
		return false;
	take(f, s);
	return true;
}

void
fairness_leave(struct fairness *f, struct fair_source *s)
{
	f->slots--;
	s->slots--;
}

void
fairness_wait(struct fairness *f, struct fair_source *s, struct fair_waiter *w)
{
	w->source = s;
	if (s->waiting++ == 0)
		TAILQ_INSERT_TAIL(&f->turns, s, turn);
	TAILQ_INSERT_TAIL(&s->waiters, w, link);
	f->waiting++;
}

void
fairness_forget(struct fairness *f, struct fair_waiter *w)
{
	struct fair_source *s = w->source;

	TAILQ_REMOVE(&s->waiters, w, link);
	f->waiting--;
	if (--s->waiting == 0)
		TAILQ_REMOVE(&f->turns, s, turn);
}

/* Takes the oldest waiter of s. If s has more, its next turn is the last. */
static struct fair_waiter *
take_first(struct fairness *f, struct fair_source *s)
{
	struct fair_waiter *w = TAILQ_FIRST(&s->waiters);

	fairness_forget(f, w);
	take(f, s);
	if (s->waiting > 0) {
		TAILQ_REMOVE(&f->turns, s, turn);
		TAILQ_INSERT_TAIL(&f->turns, s, turn);
	}
	return w;
}

struct fair_waiter *
fairness_next(struct fairness *f, size_t max)
{
	struct fair_source *s;

	if (f->slots >= max)
		return NULL;
	TAILQ_FOREACH (s, &f->turns, turn)
		if (may_take(f, s, max))
			return take_first(f, s);
	return NULL;
}

struct fair_waiter *
fairness_fullest(const struct fairness *f)
{
	struct fair_source *s, *fullest = TAILQ_FIRST(&f->turns);

	TAILQ_FOREACH (s, &f->turns, turn)
		if (s->waiting >= fullest->waiting)
			fullest = s;
	return fullest ? TAILQ_FIRST(&fullest->waiters) : NULL;
}
