/* SPDX-License-Identifier: ISC */
/*
 * What a client can know of one process: the sequence numbers of its output, of
 * exited and of closed, and the output that is retained (doc/protocol.md
 * sections 7.4, 7.5, 7.7). Plain C without system calls.
 *
 * A process is over when it has exited AND closed; exited comes first.
 */
#ifndef PROCESS_STATE_H
#define PROCESS_STATE_H

#include "retention.h"

struct process_state {
	uint64_t next_seq; /* of the next event */
	uint64_t last_output_seq;
	uint64_t output_bytes; /* in total */
	struct retention head; /* the first output; kept until closed */
	struct retention tail; /* the newest output */
	uint64_t head_seq;     /* last chunk of the head; 0: none */
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

#endif
