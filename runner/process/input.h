/* SPDX-License-Identifier: ISC */
/*
 * Input for a command's standard input or terminal. A bounded queue stands in
 * front of the pipe. When it is full, a write waits for its answer, and nothing
 * else of the session waits (doc/protocol.md section 7.6, quirk Q8).
 */
#pragma once

#include <event2/event_struct.h>

#include "base.h"
#include "queue.h"
#include "recent_ids.h"

/*
 * Enlarges a command's pipes. The kernel makes a pipe with 64 KiB. A busy one
 * gets more, so that the command and the runner need not wake each other for
 * each 64 KiB. An idle command costs nothing. This is the state of our end; all
 * zero: not enlarged.
 */
struct wide_pipe {
	uint8_t times_full;
	bool asked;
	bool wide;
};

/*
 * Called when the pipe was found full. After a few times it is enlarged, if the
 * kernel and this runner's share permit. Anything that is not a pipe stays as
 * it is.
 */
void wide_pipe_note_full(struct wide_pipe *w, int fd);

/* Called when the pipe is closed, so that others can have its share. */
void wide_pipe_end(struct wide_pipe *w);

#define INPUT_QUEUE_CHUNKS 128 /* chunks accepted but not written yet */
/* their bytes; one chunk alone may be larger */
#define INPUT_QUEUE_BYTES   (8u << 20)
#define INPUT_WAITING_MAX   4096	/* writes not answered yet */
#define INPUT_WAITING_BYTES (64u << 20) /* their bytes */

enum input_status {
	INPUT_ACCEPTED,
	INPUT_CLOSED,	  /* no input, or the command has ended */
	INPUT_TERMINATED, /* ... because it was killed */
	INPUT_FULL,	  /* too much is waiting already: refused */
	INPUT_WAITING,	  /* the caller's `answer` is called later */
};

struct input_chunk;

struct input {
	int fd; /* -1: closed */
	struct wide_pipe wide;
	enum input_status closed_as;
	struct event event;
	bool armed;
	bool closing;	       /* end of file after the queue */
	struct recent_ids ids; /* ids accepted before */
	/* accepted ones first, then waiting ones */
	TAILQ_HEAD(, input_chunk) queue;
	size_t queued, queued_bytes;
	size_t waiting, waiting_bytes;
};

/* Called once for a write that had to wait. `arg` is the caller's. */
typedef void input_answer_fn(void *arg, enum input_status status);

/* Takes fd over; -1: there is no input. */
void input_open(struct input *in, struct event_base *base, int fd);

/*
 * Writes or queues a copy of data. An id that was accepted before is accepted
 * again, and its data is not written. An empty write_id means no id. After
 * INPUT_WAITING, answer(arg, status) is called later.
 */
enum input_status input_write(struct input *in, struct slice write_id,
    struct slice data, input_answer_fn *answer, void *arg);

/* Closes the input once everything queued is written. */
void input_finish(struct input *in);

/*
 * Answers the writes that wait for room with INPUT_FULL, because their client
 * leaves.
 */
void input_refuse_waiting(struct input *in);

/* Closes the input. Waiting writes are answered with `as`. */
void input_close(struct input *in, enum input_status as);

/*
 * Frees everything. Waiting writes are answered with INPUT_CLOSED, so that
 * their owner can free `arg`.
 */
void input_clear(struct input *in);
