/* SPDX-License-Identifier: ISC */
/*
 * The newest output of one process, whole chunks with their sequence numbers
 * (doc/protocol.md section 7.5). Plain C, no operating system.
 *
 * Chunks lie one behind the other in a few blocks that grow with the output,
 * so that an idle process costs nothing and a chatty one no allocation per
 * chunk.
 */
#ifndef RETENTION_H
#define RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue.h"

enum stream { STREAM_STDOUT, STREAM_STDERR, STREAM_PTY };
#define STREAM_COUNT 3

/* "stdout", "stderr", "pty" */
const char *stream_name(enum stream stream);

struct retention_block;

struct retention {
	TAILQ_HEAD(retention_blocks, retention_block) blocks;
	size_t bytes; /* of output held */
	size_t limit_bytes;
	/* fell out at the front, ever */
	uint64_t dropped_bytes[STREAM_COUNT];
	uint64_t dropped_seq; /* the last one; 0: none */
};

struct retention_chunk {
	uint64_t seq;
	enum stream stream;
	const uint8_t *data; /* valid until the next append */
	size_t len;
};

/* Where a walk stands; start with retention_first(). */
struct retention_cursor {
	const struct retention_block *block;
	size_t at;
};

void retention_init(struct retention *r, size_t limit_bytes);
void retention_clear(struct retention *r);

/* Keeps a copy; drops whole chunks at the front while more than the limit is
 * held. A chunk alone larger than the limit is kept until the next one. */
void retention_append(struct retention *r, uint64_t seq, enum stream stream,
    const void *data, size_t len);

/* Drops everything. */
void retention_drop(struct retention *r);

/* Bytes of memory that it takes. */
size_t retention_memory(const struct retention *r);

/* Of all streams. */
uint64_t retention_dropped(const struct retention *r);

/* Walks from the oldest chunk; false at the end. */
struct retention_cursor retention_first(const struct retention *r);
bool retention_next(const struct retention *r, struct retention_cursor *c,
    struct retention_chunk *chunk);

#endif
