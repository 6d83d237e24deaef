/* SPDX-License-Identifier: ISC */
/*
 * The newest output of one process.
 */
#include "retention.h"

#include <string.h>

#include "util.h"

#define BLOCK_FIRST_BYTES 512
/*
 * Room for two chunks of the maximal length with their records. With room for
 * one, a block could waste half of its memory.
 */
#define BLOCK_MAX_BYTES (2 * ((64u << 10) + sizeof(struct record)))

struct retention_block {
	TAILQ_ENTRY(retention_block) link; /* retention.blocks */
	size_t head; /* offset of the first record still held */
	size_t used;
	size_t cap;
	uint8_t bytes[];
};

/* Precedes each chunk in a block; not aligned. */
struct record {
	uint64_t seq;
	uint32_t len;
	uint32_t stream;
};

const char *
stream_name(enum stream stream)
{
	static const char *const names[] = { "stdout", "stderr", "pty" };

	return names[stream];
}

void
retention_init(struct retention *r, size_t limit_bytes)
{
	*r = (struct retention){ .limit_bytes = limit_bytes };
	TAILQ_INIT(&r->blocks);
}

static void
drop_block(struct retention *r, struct retention_block *b)
{
	TAILQ_REMOVE(&r->blocks, b, link);
	free(b);
}

void
retention_clear(struct retention *r)
{
	while (!TAILQ_EMPTY(&r->blocks))
		drop_block(r, TAILQ_FIRST(&r->blocks));
	r->bytes = 0;
}

static void
drop_oldest(struct retention *r)
{
	struct retention_block *b = TAILQ_FIRST(&r->blocks);
	struct record record;

	memcpy(&record, b->bytes + b->head, sizeof(record));
	b->head += sizeof(record) + record.len;
	r->bytes -= record.len;
	r->dropped_bytes[record.stream] += record.len;
	r->dropped_seq = record.seq;
	if (b->head == b->used)
		drop_block(r, b);
}

/*
 * Returns a block with room for need bytes. A new block is twice as large as
 * the one before, up to BLOCK_MAX_BYTES.
 */
static struct retention_block *
block_for(struct retention *r, size_t need)
{
	struct retention_block *b = TAILQ_LAST(&r->blocks, retention_blocks);
	size_t cap = BLOCK_FIRST_BYTES;

	if (b != NULL && b->cap - b->used >= need)
		return b;
	if (b != NULL)
		cap =
		    b->cap * 2 < BLOCK_MAX_BYTES ? b->cap * 2 : BLOCK_MAX_BYTES;
	if (cap < need)
		cap = need;
	b = xmalloc(sizeof(*b) + cap);
	*b = (struct retention_block){ .cap = cap };
	TAILQ_INSERT_TAIL(&r->blocks, b, link);
	return b;
}

void
retention_append(struct retention *r, uint64_t seq, enum stream stream,
    const void *data, size_t len)
{
	struct record record = {
		.seq = seq, .len = (uint32_t)len, .stream = stream
	};
	struct retention_block *b;

	while (r->bytes > 0 && r->bytes + len > r->limit_bytes)
		drop_oldest(r);
	b = block_for(r, sizeof(record) + len);
	memcpy(b->bytes + b->used, &record, sizeof(record));
	memcpy(b->bytes + b->used + sizeof(record), data, len);
	b->used += sizeof(record) + len;
	r->bytes += len;
}

void
retention_drop(struct retention *r)
{
	while (!TAILQ_EMPTY(&r->blocks))
		drop_oldest(r);
}

size_t
retention_memory(const struct retention *r)
{
	const struct retention_block *b;
	size_t bytes = 0;

	TAILQ_FOREACH (b, &r->blocks, link)
		bytes += sizeof(*b) + b->cap;
	return bytes;
}

uint64_t
retention_dropped(const struct retention *r)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < STREAM_COUNT; i++)
		bytes += r->dropped_bytes[i];
	return bytes;
}

struct retention_cursor
retention_first(const struct retention *r)
{
	const struct retention_block *b = TAILQ_FIRST(&r->blocks);

	return (struct retention_cursor){ b, b ? b->head : 0 };
}

bool
retention_next(const struct retention *r, struct retention_cursor *c,
    struct retention_chunk *chunk)
{
	struct record record;

	while (c->block != NULL && c->at == c->block->used) {
		c->block = TAILQ_NEXT(c->block, link);
		c->at = c->block ? c->block->head : 0;
	}
	if (c->block == NULL)
		return false;
	memcpy(&record, c->block->bytes + c->at, sizeof(record));
	*chunk = (struct retention_chunk){ record.seq, record.stream,
		c->block->bytes + c->at + sizeof(record), record.len };
	c->at += sizeof(record) + record.len;
	return true;
}
