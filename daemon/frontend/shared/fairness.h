/* SPDX-License-Identifier: ISC */
/*
 * Decides which connection may come in next. Connections that have shown no
 * credential yet need a slot, and the number of slots is limited. The others
 * wait, each in the queue of its source, and the sources take turns. A source
 * may hold as many slots as remain free. A single source can therefore hold
 * half of them, and other sources always find room, however many connections it
 * makes.
 */
#ifndef FAIRNESS_H
#define FAIRNESS_H

#include <stdbool.h>
#include <stddef.h>

#include "queue.h"

/* A connection that waits. Part of the caller's object. */
struct fair_waiter {
	TAILQ_ENTRY(fair_waiter) link; /* fair_source.waiters */
	struct fair_source *source;
};

/* A source. It must exist while it has slots or waiters. */
struct fair_source {
	TAILQ_HEAD(, fair_waiter) waiters; /* oldest first */
	/* fairness.turns, while it has waiters */
	TAILQ_ENTRY(fair_source) turn;
	size_t waiting, slots;
};

struct fairness {
	TAILQ_HEAD(, fair_source) turns;
	size_t waiting, slots; /* of all sources together */
};

#define FAIRNESS_INITIALIZER(f)                                                \
	{                                                                      \
		.turns = TAILQ_HEAD_INITIALIZER((f).turns)                     \
	}

void fair_source_init(struct fair_source *s);

/* Takes a slot, if less than max are taken and the source may have another.
 * Returns false if the connection must wait; it must also wait if others of its
 * source do. */
bool fairness_enter(struct fairness *f, struct fair_source *s, size_t max);

/* Gives a slot back. */
void fairness_leave(struct fairness *f, struct fair_source *s);

/* Adds w to the end of its source's queue. */
void fairness_wait(
    struct fairness *f, struct fair_source *s, struct fair_waiter *w);

/* Removes w from the queue. */
void fairness_forget(struct fairness *f, struct fair_waiter *w);

/* Returns the next connection that may come in, or NULL. It has a slot and is
 * no longer in the queue. */
struct fair_waiter *fairness_next(struct fairness *f, size_t max);

/* Returns the oldest waiter of the source with the most waiters. Among equal
 * sources, the one whose turn is last is chosen. Returns NULL if nobody
 * waits. */
struct fair_waiter *fairness_fullest(const struct fairness *f);

#endif
