/*
 * What a client can know of one process: its sequence of output, exited and
 * closed, and what of it is retained (PROTOCOL.md sections 7.4, 7.5, 7.7).
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
	struct retention retention;
	bool exited;
	bool closed;
	int exit_code; /* once exited */
	bool sandbox_denied;
};

/* A question of process/read. */
struct process_query {
	uint64_t after_seq;
	uint64_t max_bytes; /* UINT64_MAX: no limit was given */
};

void process_state_init(struct process_state *s, size_t retention_bytes);
void process_state_clear(struct process_state *s);

/* Each takes the next sequence number and returns it. */
uint64_t process_state_output(
    struct process_state *s, enum stream stream, const void *data, size_t len);
uint64_t process_state_exited(struct process_state *s, int exit_code);
uint64_t process_state_closed(struct process_state *s);

/* Is there something new behind after_seq, so that a long poll ends? */
bool process_state_has_news(const struct process_state *s, uint64_t after_seq);

/*
 * Walks the answer of process/read: chunks behind after_seq until the next
 * would exceed max_bytes, the first always. Calls visit for each and returns
 * nextSeq.
 */
uint64_t process_state_read(const struct process_state *s,
    const struct process_query *q,
    void (*visit)(const struct retention_chunk *chunk, void *arg), void *arg);

#endif
