/* SPDX-License-Identifier: ISC */
/*
 * Keeps the newest output of one process as whole chunks with their sequence
 * numbers (doc/protocol.md section 7.5). Plain C without system calls.
 *
 * Chunks lie one after another in a few blocks that grow with the output. So an
 * idle process needs no memory, and a busy one needs no allocation per chunk.
 */
#ifndef RETENTION_H
#define RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue.h"

enum stream { STREAM_STDOUT, STREAM_STDERR, STREAM_PTY };
#define STREAM_COUNT 3

/* Returns "stdout", "stderr" or "pty". */
const char *stream_name(enum stream stream);

struct retention_block;

struct retention {
	TAILQ_HEAD(retention_blocks, retention_block) blocks;
	size_t bytes; /* of output held */
	size_t limit_bytes;
	/* dropped so far, by stream */
	uint64_t dropped_bytes[STREAM_COUNT];
	uint64_t dropped_seq; /* last dropped chunk; 0: none */
};

struct retention_chunk {
	uint64_t seq;
	enum stream stream;
	const uint8_t *data; /* valid until the next append */
	size_t len;
};

/* The position of a walk; start with retention_first(). */
struct retention_cursor {
	const struct retention_block *block;
	size_t at;
};

void retention_init(struct retention *r, size_t limit_bytes);
void retention_clear(struct retention *r);

/*
 * Keeps a copy of data. First drops whole chunks, oldest first, until the new
 * one fits within the limit. A chunk that is larger than the limit is kept
 * until the next one comes.
 */
void retention_append(struct retention *r, uint64_t seq, enum stream stream,
    const void *data, size_t len);

/* Drops everything, and counts it as dropped. */
void retention_drop(struct retention *r);

/* Returns the bytes of memory that the blocks take. */
size_t retention_memory(const struct retention *r);

/* Returns the dropped bytes of all streams. */
uint64_t retention_dropped(const struct retention *r);

/*
 * Walk from the oldest chunk to the newest; retention_next() returns false at
 * the end.
 */
struct retention_cursor retention_first(const struct retention *r);
bool retention_next(const struct retention *r, struct retention_cursor *c,
    struct retention_chunk *chunk);

#endif
