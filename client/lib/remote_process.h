/* SPDX-License-Identifier: ISC */
/*
 * The events of a process. Each is delivered once and in the order of its
 * number (doc/protocol.md section 7.7), even across several connections.
 */
#ifndef REMOTE_PROCESS_H
#define REMOTE_PROCESS_H

#include "client.h"

/* The most bytes of events that are held while missing ones are read. */
#define PROCESS_HELD_MAX (64u << 20) /* bytes */

enum event_kind { EVENT_OUTPUT, EVENT_EXITED, EVENT_CLOSED };

struct event {
	TAILQ_ENTRY(event) link; /* execd_process.held, by number */
	uint64_t seq;
	enum event_kind kind;
	enum execd_stream stream;
	uint8_t *data; /* owned */
	size_t len;
	struct execd_exit how;
};
TAILQ_HEAD(event_list, event);

struct execd_process {
	TAILQ_ENTRY(execd_process) link; /* client.processes */
	struct execd_client *client;
	char *id; /* owned */
	struct execd_process_events events;
	void *arg;
	bool started; /* the server has it */
	bool ended;   /* closed or failed: no event follows */
	bool exited;
	struct execd_exit read_exit; /* what process/read reported */
	bool read_closed; /* it was also closed; kept while details are asked */
	bool reading;	  /* process/read or process/wait is under way */
	uint64_t last;	  /* number of the last delivered event */
	uint64_t bytes;	  /* of output, delivered or known to be lost */
	struct event_list held;
	size_t held_bytes;
	uint64_t writes;
	execd_answer_fn *answered; /* gets the answer to the start; NULL */
	void *answered_arg;
	unsigned int busy; /* callers that deliver its events now */
	bool freed;	   /* freed by a callback while busy */
};

/* Begins params with "processId"; calls_send() ends them. */
void process_begin(
    const struct execd_process *p, struct buf *b, struct json_writer *w);

/* Keep the process in memory while its events are delivered: a callback may
 * free it. */
void process_enter(struct execd_process *p);
void process_leave(struct execd_process *p);

/* Asks the server for the events after p->last. */
void process_read(struct execd_process *p);
/* Delivers the last event: the process was not started, or its state is
 * unknown. */
void process_fail(struct execd_process *p, int code, const char *message);

#endif
