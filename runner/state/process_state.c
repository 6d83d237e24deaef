/* SPDX-License-Identifier: ISC */
#include "process_state.h"

#include <ctype.h>

/*
 * The newest output of one process.
 */

#define BLOCK_FIRST_BYTES 512
/*
 * Room for two chunks of the maximal length with their records. With room for
 * one, a block could waste half of its memory.
 */
#define BLOCK_MAX_BYTES (2 * (CHUNK_MAX_BYTES + sizeof(struct record)))

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

/* Drops everything, and counts it as dropped. */
static void
retention_drop(struct retention *r)
{
	while (!TAILQ_EMPTY(&r->blocks))
		drop_oldest(r);
}

/* Returns the bytes of memory that the blocks take. */
static size_t
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

/*
 * Walk from the oldest chunk to the newest; retention_next() returns false at
 * the end.
 */
static struct retention_cursor
retention_first(const struct retention *r)
{
	const struct retention_block *b = TAILQ_FIRST(&r->blocks);

	return (struct retention_cursor){ b, b ? b->head : 0 };
}

static bool
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

/* --- the process -------------------------------------------------------- */

void
process_state_init(struct process_state *s, size_t retention_bytes)
{
	*s = (struct process_state){ .next_seq = 1 };
	retention_init(&s->head, 0);
	retention_init(&s->tail, retention_bytes);
}

void
process_state_clear(struct process_state *s)
{
	retention_clear(&s->head);
	retention_clear(&s->tail);
}

void
process_state_keep(
    struct process_state *s, size_t head_bytes, size_t tail_bytes)
{
	retention_init(&s->head, head_bytes);
	retention_init(&s->tail, tail_bytes);
}

void
process_state_wait(struct process_state *s, size_t wait_bytes)
{
	process_state_keep(s, 0, SIZE_MAX);
	s->wait_bytes = wait_bytes;
}

/* A single chunk is always permitted. */
bool
process_state_is_full(const struct process_state *s)
{
	uint64_t away = s->output_bytes - s->arrived_bytes;

	if (s->hold_bytes > 0)
		return away > 0 && away + CHUNK_MAX_BYTES > s->hold_bytes;
	return s->wait_bytes > 0 && s->tail.bytes > 0 &&
	       s->tail.bytes + CHUNK_MAX_BYTES > s->wait_bytes;
}

void
process_state_hold(struct process_state *s, size_t hold_bytes)
{
	process_state_keep(s, 0, hold_bytes);
	s->hold_bytes = hold_bytes;
}

void
process_state_arrived(struct process_state *s, uint64_t bytes)
{
	if (bytes > s->output_bytes)
		bytes = s->output_bytes;
	if (bytes > s->arrived_bytes)
		s->arrived_bytes = bytes;
}

/* What was taken counts as dropped, so that another reader sees the gap. */
void
process_state_taken(struct process_state *s, uint64_t seq)
{
	struct retention_chunk oldest;
	struct retention_cursor c;

	while (s->wait_bytes > 0 &&
	       (c = retention_first(&s->tail),
		   retention_next(&s->tail, &c, &oldest)) &&
	       oldest.seq <= seq)
		drop_oldest(&s->tail);
}

size_t
process_state_chunk_max(const struct process_state *s)
{
	size_t room = s->head.limit_bytes - s->head.bytes;

	return s->output_bytes == s->head.bytes && room > 0 ? room : SIZE_MAX;
}

uint64_t
process_state_output(
    struct process_state *s, enum stream stream, const void *data, size_t len)
{
	struct retention *r = &s->tail;

	/* All output so far is in the head, and this chunk fits there too. */
	if (process_state_chunk_max(s) != SIZE_MAX &&
	    len <= process_state_chunk_max(s)) {
		r = &s->head;
		s->head_seq = s->next_seq;
	}
	retention_append(r, s->next_seq, stream, data, len);
	s->last_output_seq = s->next_seq;
	s->output_bytes += len;
	return s->next_seq++;
}

uint64_t
process_state_exited(struct process_state *s, int exit_code)
{
	s->exited = true;
	s->exit_code = exit_code;
	return s->next_seq++;
}

uint64_t
process_state_closed(struct process_state *s)
{
	s->closed = true;
	return s->next_seq++;
}

size_t
process_state_memory(const struct process_state *s)
{
	return retention_memory(&s->head) + retention_memory(&s->tail);
}

void
process_state_drop(struct process_state *s)
{
	retention_drop(&s->head);
	retention_drop(&s->tail);
	for (size_t i = 0; i < STREAM_COUNT; i++)
		s->tail.dropped_bytes[i] += s->head.dropped_bytes[i];
	if (s->tail.dropped_seq == 0)
		s->tail.dropped_seq = s->head.dropped_seq;
	retention_init(&s->head, 0);
	s->head_seq = 0;
}

bool
process_state_has_news(const struct process_state *s, uint64_t after_seq)
{
	if (s->closed)
		return true;
	if (s->exited && after_seq < s->next_seq - 1)
		return true;
	/* The newest chunk stays retained until the process is closed. */
	return s->last_output_seq > after_seq;
}

struct process_gap
process_state_gap(const struct process_state *s)
{
	uint64_t bytes = retention_dropped(&s->tail);

	return (struct process_gap){ .after_seq = s->head_seq,
		.last_seq = s->tail.dropped_seq,
		.bytes = bytes,
		.end_bytes = s->head.bytes + bytes };
}

uint64_t
process_state_read(const struct process_state *s, const struct process_query *q,
    void (*visit)(const struct retention_chunk *chunk, void *arg), void *arg,
    bool *crosses)
{
	const struct retention *parts[] = { &s->head, &s->tail };
	uint64_t bytes = 0, last = 0;
	bool full = false;

	for (size_t i = 0; i < nitems(parts) && !full; i++) {
		struct retention_cursor c = retention_first(parts[i]);
		struct retention_chunk chunk;

		while (!full && retention_next(parts[i], &c, &chunk)) {
			if (chunk.seq <= q->after_seq)
				continue;
			full =
			    last != 0 && (bytes > q->max_bytes ||
					     chunk.len > q->max_bytes - bytes);
			if (full)
				break;
			visit(&chunk, arg);
			bytes += chunk.len;
			last = chunk.seq;
		}
	}
	*crosses = q->after_seq < s->tail.dropped_seq &&
		   (s->tail.dropped_seq < last || last == 0);
	if (q->max_bytes != UINT64_MAX && last != 0)
		return last + 1;
	return s->next_seq;
}

/* --- the guess whether something was denied ----------------------------- */

#define EXIT_SIGSYS 159 /* 128 + SIGSYS */

static const char *const words[] = { "operation not permitted",
	"permission denied", "read-only file system", "seccomp", "sandbox",
	"landlock", "failed to write file" };

static bool
holds_word(const char *text, size_t len)
{
	for (size_t i = 0; i < nitems(words); i++)
		if (memmem(text, len, words[i], strlen(words[i])) != NULL)
			return true;
	return false;
}

/*
 * Writes the chunks of the given streams into text, in lower case, and returns
 * its length. text has room for all of them.
 */
static size_t
collect(const struct retention *output, unsigned streams, char *text)
{
	struct retention_cursor c = retention_first(output);
	struct retention_chunk chunk;
	size_t len = 0;

	while (retention_next(output, &c, &chunk)) {
		if (!(streams & 1u << chunk.stream))
			continue;
		for (size_t i = 0; i < chunk.len; i++)
			text[len++] = (char)tolower(chunk.data[i]);
	}
	return len;
}

/*
 * Each stream is searched alone and all are searched together: a word may be
 * split by a chunk of another stream, or may appear only when chunks are
 * joined.
 */
static bool
output_names_denial(const struct retention *output)
{
	static const unsigned sets[] = { 1u << STREAM_STDERR,
		1u << STREAM_STDOUT, ~0u };
	_cleanup_free_ char *text = xmalloc(output->bytes + 1);

	for (size_t i = 0; i < nitems(sets); i++)
		if (holds_word(text, collect(output, sets[i], text)))
			return true;
	return false;
}

bool
denial_is_likely(const struct retention *output, int exit_code)
{
	if (exit_code == 0)
		return false;
	return output_names_denial(output) || exit_code == EXIT_SIGSYS;
}
