/* SPDX-License-Identifier: ISC */
/*
 * What goes to a command's standard input or terminal: a bounded queue in
 * front of the pipe. Beyond it a write waits for its answer, and waits alone;
 * nothing else of the session does (doc/protocol.md section 7.6, quirk Q8).
 */
#ifndef INPUT_H
#define INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event_struct.h>

#include "queue.h"
#include "recent_ids.h"
#include "util.h"
#include "wide_pipe.h"

#define INPUT_QUEUE_CHUNKS  128		/* accepted, not written yet */
#define INPUT_QUEUE_BYTES   (8u << 20)	/* of them, unless it is only one */
#define INPUT_WAITING_MAX   4096	/* writes without answer */
#define INPUT_WAITING_BYTES (64u << 20) /* of them */

enum input_status {
	INPUT_ACCEPTED,
	INPUT_CLOSED,	  /* no input, or the command has ended */
	INPUT_TERMINATED, /* ... because it was killed */
	INPUT_FULL,	  /* too much is waiting: refused */
	INPUT_WAITING,	  /* `answer` comes later */
};

struct input_chunk;

struct input {
	int fd; /* -1: closed */
	struct wide_pipe wide;
	enum input_status closed_as;
	struct event event;
	bool armed;
	bool closing;			 /* end of file behind what is queued */
	struct recent_ids ids;		 /* accepted before */
	TAILQ_HEAD(, input_chunk) queue; /* accepted first, then waiting */
	size_t queued, queued_bytes;
	size_t waiting, waiting_bytes;
};

/* Told once for a write that had to wait. `arg` is the caller's. */
typedef void input_answer_fn(void *arg, enum input_status status);

/* fd (or -1 for none) is taken over. */
void input_open(struct input *in, struct event_base *base, int fd);

/* Writes or queues a copy of data. An id accepted before is accepted again
 * and not written; an empty id is none. INPUT_WAITING: answer(arg) follows. */
enum input_status input_write(struct input *in, struct slice write_id,
    struct slice data, input_answer_fn *answer, void *arg);

/* End of file once everything queued is written. */
void input_finish(struct input *in);

/* Writes that wait for room are answered INPUT_FULL: their client leaves. */
void input_refuse_waiting(struct input *in);

/* No more input; waiting writes are answered with `as`. */
void input_close(struct input *in, enum input_status as);

/* Frees everything; waiting writes are forgotten (their free is arg's
 * owner's: answer is called with INPUT_CLOSED). */
void input_clear(struct input *in);

#endif
