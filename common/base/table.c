/* SPDX-License-Identifier: ISC */
/*
 * An intrusive hash table. It grows by doubling and never shrinks.
 */
#include "table.h"

#define TABLE_FIRST_BUCKETS 16

void
table_clear(struct table *t)
{
	free(t->buckets);
	*t = (struct table){ 0 };
}

static void
table_grow(struct table *t)
{
	size_t n = t->buckets ? (t->mask + 1) * 2 : TABLE_FIRST_BUCKETS;
	struct table_node **buckets = xcalloc(n, sizeof(struct table_node *));

	for (size_t i = 0; t->buckets && i <= t->mask; i++) {
		struct table_node *node, *next;

		for (node = t->buckets[i]; node != NULL; node = next) {
			next = node->next;
			node->next = buckets[node->hash & (n - 1)];
			buckets[node->hash & (n - 1)] = node;
		}
	}
	free(t->buckets);
	t->buckets = buckets;
	t->mask = n - 1;
}

void
table_insert(struct table *t, struct table_node *node, uint64_t hash)
{
	if (t->buckets == NULL || t->count > t->mask)
		table_grow(t);
	node->hash = hash;
	node->next = t->buckets[hash & t->mask];
	t->buckets[hash & t->mask] = node;
	t->count++;
}

void
table_remove(struct table *t, struct table_node *node)
{
	struct table_node **at = &t->buckets[node->hash & t->mask];

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	t->count--;
}

struct table_node *
table_find(const struct table *t, uint64_t hash, table_match_fn *match,
    const void *key)
{
	struct table_node *node;

	if (t->buckets == NULL)
		return NULL;
	for (node = t->buckets[hash & t->mask]; node != NULL; node = node->next)
		if (node->hash == hash && match(node, key))
			return node;
	return NULL;
}

struct table_node *
table_next(const struct table *t, struct table_node *node)
{
	size_t i = node != NULL ? (node->hash & t->mask) + 1 : 0;

	if (node != NULL && node->next != NULL)
		return node->next;
	for (; t->count > 0 && i <= t->mask; i++)
		if (t->buckets[i] != NULL)
			return t->buckets[i];
	return NULL;
}
