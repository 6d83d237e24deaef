/* SPDX-License-Identifier: ISC */
/*
 * An intrusive hash table: the node is part of the object, so an entry needs no
 * allocation of its own. Keys that come from a peer are hashed with
 * siphash_bytes() (siphash.h), whose key no peer knows.
 */
#pragma once

#include "base.h"

struct table_node {
	struct table_node *next;
	uint64_t hash;
};

struct table {
	struct table_node **buckets; /* owned */
	size_t mask;
	size_t count;
};

/* Returns the object of this type that contains `node` as `member`. */
#define TABLE_OBJECT(node, type, member)                                       \
	((type *)(void *)((char *)(node)-offsetof(type, member)))

/* Returns true if the node is the one with that key. */
typedef bool table_match_fn(const struct table_node *node, const void *key);

void table_clear(struct table *t); /* frees the buckets, not the objects */
void table_insert(struct table *t, struct table_node *node, uint64_t hash);
void table_remove(struct table *t, struct table_node *node);
struct table_node *table_find(const struct table *t, uint64_t hash,
    table_match_fn *match, const void *key);

/* Returns the node behind `node` in the order of the buckets, the first one
 * behind NULL; NULL: there is none. */
struct table_node *table_next(const struct table *t, struct table_node *node);

/* For each object, which has its node as `member`. The body must not change the
 * table. */
#define TABLE_FOREACH(object, t, member)                                       \
	for (struct table_node *at_ = table_next(t, NULL);                     \
	     at_ != NULL &&                                                    \
	     ((object) = TABLE_OBJECT(at_, __typeof__(*(object)), member),     \
	     true);                                                            \
	     at_ = table_next(t, at_))
