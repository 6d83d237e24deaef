/* SPDX-License-Identifier: ISC */
/*
 * An intrusive hash table: the node is part of the object, so an entry needs no
 * allocation of its own. Keys that come from a peer are hashed with
 * siphash_bytes() (siphash.h), whose key no peer knows.
 */
#ifndef TABLE_H
#define TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Returns any node, or NULL if the table is empty. Used to empty a table. */
struct table_node *table_any(const struct table *t);

/* Calls visit() for every node. visit() must not change the table. */
void table_each(const struct table *t,
    void (*visit)(struct table_node *node, void *arg), void *arg);

#endif
