/* SPDX-License-Identifier: ISC */
/*
 * Who may come in next. Connections that have shown no credential yet hold
 * slots, of which there are only so many; the others wait, each in the queue of
 * its source, and the sources take turns. A source may hold as many slots as
 * are free: alone half of them, so that there is room for whoever comes from
 * elsewhere, however many it sends.
 */
#ifndef FAIRNESS_H
#define FAIRNESS_H

#include <stdbool.h>
#include <stddef.h>

#include "queue.h"

/* Of one that waits; part of the caller's object. */
struct fair_waiter {
	TAILQ_ENTRY(fair_waiter) link; /* fair_source.waiters */
	struct fair_source *source;
};

/* Of a source; it must stay while it has slots or waiters. */
struct fair_source {
	TAILQ_HEAD(, fair_waiter) waiters; /* the oldest first */
	TAILQ_ENTRY(fair_source) turn;	   /* fairness.turns, with waiters */
	size_t waiting, slots;
};

struct fairness {
	TAILQ_HEAD(, fair_source) turns;
	size_t waiting, slots; /* of all sources */
};

#define FAIRNESS_INITIALIZER(f)                                                \
	{                                                                      \
		.turns = TAILQ_HEAD_INITIALIZER((f).turns)                     \
	}

void fair_source_init(struct fair_source *s);

/* Takes a slot, with max of them in all. False: it has to wait, also behind
 * those of its source that do. */
bool fairness_enter(struct fairness *f, struct fair_source *s, size_t max);

/* Gives a slot back. */
void fairness_leave(struct fairness *f, struct fair_source *s);

/* Waits, behind the others of its source. */
void fairness_wait(
    struct fairness *f, struct fair_source *s, struct fair_waiter *w);

/* Waits no more. */
void fairness_forget(struct fairness *f, struct fair_waiter *w);

/* The next, which has a slot and waits no more; NULL when nobody may. */
struct fair_waiter *fairness_next(struct fairness *f, size_t max);

/* Of the source with the most waiters the one that has waited for longest; of
 * several such sources the one whose turn is last. NULL: nobody waits. */
struct fair_waiter *fairness_fullest(const struct fairness *f);

#endif
