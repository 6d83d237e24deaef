/* SPDX-License-Identifier: ISC */
/*
 * What a client can know of one process: its sequence of output, exited and
 * closed, and what of it is retained (doc/protocol.md sections 7.4, 7.5, 7.7).
 * Plain C, no operating system: any runner keeps this the same way.
 *
 * A process is over when it has exited AND closed; exited comes first.
 */
#ifndef PROCESS_STATE_H
#define PROCESS_STATE_H

#include "retention.h"

struct process_state {
	uint64_t next_seq; /* the number the next event will have */
	uint64_t last_output_seq;
	uint64_t output_bytes; /* ever */
	struct retention head; /* the first output: never drops */
	struct retention tail; /* the newest */
	uint64_t head_seq;     /* the last chunk of the head; 0: none */
	bool exited;
	bool closed;
	int exit_code; /* once exited */
	bool sandbox_denied;
};

/* What is retained no more lies between the head and the tail. */
struct process_gap {
	uint64_t after_seq; /* the last chunk in front of it; 0: none */
	uint64_t last_seq;  /* of the missing chunks; 0: nothing is missing */
	uint64_t bytes;	    /* in them */
	uint64_t end_bytes; /* of output in front of the first behind it */
};

/* A question of process/read. */
struct process_query {
	uint64_t after_seq;
	uint64_t max_bytes; /* UINT64_MAX: no limit was given */
};

void process_state_init(struct process_state *s, size_t retention_bytes);
void process_state_clear(struct process_state *s);

/* Before there is any output: the first head_bytes are kept for good, and of
 * the rest the newest tail_bytes. */
void process_state_keep(
    struct process_state *s, size_t head_bytes, size_t tail_bytes);

/* How long the next chunk may be, so that the head is filled exactly. */
size_t process_state_chunk_max(const struct process_state *s);

/* Each takes the next sequence number and returns it. */
uint64_t process_state_output(
    struct process_state *s, enum stream stream, const void *data, size_t len);
uint64_t process_state_exited(struct process_state *s, int exit_code);
uint64_t process_state_closed(struct process_state *s);

/* Bytes of memory that its output takes. */
size_t process_state_memory(const struct process_state *s);

/* Retains no output any more: all of it is a gap. Closed ones only. */
void process_state_drop(struct process_state *s);

/* Is there something new behind after_seq, so that a long poll ends? */
bool process_state_has_news(const struct process_state *s, uint64_t after_seq);

struct process_gap process_state_gap(const struct process_state *s);

/*
 * Walks the answer of process/read: chunks behind after_seq until the next
 * would exceed max_bytes, the first always. Calls visit for each and returns
 * nextSeq. *crosses: the gap lies between what the client has and the last
 * chunk here, or the end.
 */
uint64_t process_state_read(const struct process_state *s,
    const struct process_query *q,
    void (*visit)(const struct retention_chunk *chunk, void *arg), void *arg,
    bool *crosses);

#endif
