/* SPDX-License-Identifier: ISC */
/*
 * What a client can know of one process: the sequence numbers of its output, of
 * exited and of closed, and the output that is retained (doc/protocol.md
 * sections 7.4, 7.5, 7.7). Plain C without system calls.
 *
 * A process is over when it has exited AND closed; exited comes first.
 */
#pragma once

#include "base.h"
#include "queue.h"

enum stream { STREAM_STDOUT, STREAM_STDERR, STREAM_PTY };
#define STREAM_COUNT 3

#define CHUNK_MAX_BYTES (64u << 10) /* of output that a process writes */

/* Returns "stdout", "stderr" or "pty". */
const char *stream_name(enum stream stream);

struct retention_block;

/*
 * Keeps the newest output of one process as whole chunks with their sequence
 * numbers (doc/protocol.md section 7.5).
 *
 * Chunks lie one after another in a few blocks that grow with the output. So an
 * idle process needs no memory, and a busy one needs no allocation per chunk.
 */
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

/* Returns the dropped bytes of all streams. */
uint64_t retention_dropped(const struct retention *r);

struct process_state {
	uint64_t next_seq; /* of the next event */
	uint64_t last_output_seq;
	uint64_t output_bytes; /* in total */
	struct retention head; /* the first output; kept until closed */
	struct retention tail; /* the newest output */
	uint64_t head_seq;     /* last chunk of the head; 0: none */
	/* output waits while so much was not taken; 0: the oldest is dropped */
	size_t wait_bytes;
	/* or while so much is not known to have arrived; 0: it does not */
	size_t hold_bytes;
	uint64_t arrived_bytes; /* of output_bytes */
	bool exited;
	bool closed;
	int exit_code; /* valid once exited */
	bool sandbox_denied;
};

/* The output that is no longer retained. It lies between head and tail. */
struct process_gap {
	uint64_t after_seq; /* last chunk before the gap; 0: none */
	uint64_t last_seq;  /* last missing chunk; 0: nothing is missing */
	uint64_t bytes;	    /* in the missing chunks */
	/* output bytes before the first chunk after the gap */
	uint64_t end_bytes;
};

/* The parameters of process/read. */
struct process_query {
	uint64_t after_seq;
	uint64_t max_bytes; /* UINT64_MAX: no limit was given */
};

void process_state_init(struct process_state *s, size_t retention_bytes);
void process_state_clear(struct process_state *s);

/*
 * To be called before there is any output. The first head_bytes are kept until
 * the process is closed; of the rest, the newest tail_bytes are kept.
 */
void process_state_keep(
    struct process_state *s, size_t head_bytes, size_t tail_bytes);

/*
 * To be called before there is any output. Nothing is dropped before it was
 * taken; the process waits while the next chunk could exceed wait_bytes.
 */
void process_state_wait(struct process_state *s, size_t wait_bytes);
bool process_state_is_full(const struct process_state *s);
/*
 * The client has everything up to this number. Does nothing without
 * process_state_wait().
 */
void process_state_taken(struct process_state *s, uint64_t seq);

/*
 * To be called before there is any output. The newest hold_bytes are kept, as
 * without this, but none is dropped of which the client has not said that it
 * arrived; the process waits in place of that.
 */
void process_state_hold(struct process_state *s, size_t hold_bytes);
/* The client has so many bytes of output in all. */
void process_state_arrived(struct process_state *s, uint64_t bytes);

/*
 * Returns the maximal length of the next chunk, so that the head is filled
 * exactly.
 */
size_t process_state_chunk_max(const struct process_state *s);

/* Each of these takes the next sequence number and returns it. */
uint64_t process_state_output(
    struct process_state *s, enum stream stream, const void *data, size_t len);
uint64_t process_state_exited(struct process_state *s, int exit_code);
uint64_t process_state_closed(struct process_state *s);

/* Returns the bytes of memory that the retained output takes. */
size_t process_state_memory(const struct process_state *s);

/*
 * Drops all retained output; all of it becomes a gap. Only for closed
 * processes.
 */
void process_state_drop(struct process_state *s);

/*
 * Tells whether there is something newer than after_seq, so that a long poll
 * ends.
 */
bool process_state_has_news(const struct process_state *s, uint64_t after_seq);

struct process_gap process_state_gap(const struct process_state *s);

/*
 * Walks the answer of process/read: the chunks after after_seq, until the next
 * one would exceed max_bytes. The first chunk is always included. Calls visit
 * for each and returns nextSeq. *crosses is set if the gap lies between what
 * the client has and the last chunk of this answer, or the end of the output.
 */
uint64_t process_state_read(const struct process_state *s,
    const struct process_query *q,
    void (*visit)(const struct retention_chunk *chunk, void *arg), void *arg,
    bool *crosses);

/*
 * Guesses whether a sandboxed command failed because something was denied to
 * it. The guess follows the peer's rules, and clients act on it (doc/sandbox.md
 * part D). exit_code is 128 + n for a command that signal n killed. The guess
 * uses this code and the retained output.
 */
bool denial_is_likely(const struct retention *output, int exit_code);
