/* SPDX-License-Identifier: ISC */
/*
 * Events of a process in the order of their numbers, each once
 * (doc/protocol.md section 7.7), whatever connections they came over.
 */
#ifndef REMOTE_PROCESS_H
#define REMOTE_PROCESS_H

#include "client.h"

/* Events that came before the ones missing, while those are read. */
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
	struct execd_exit read_exit; /* as process/read tells it, and whether */
	bool read_closed;	     /* it is closed, while details are asked */
	bool reading;		     /* process/read is under way */
	uint64_t last;	/* number of the last event that was handed out */
	uint64_t bytes; /* of output: handed out, and known to be lost */
	struct event_list held;
	size_t held_bytes;
	uint64_t writes;
	unsigned int busy; /* its events are being handed out */
	bool freed;	   /* by a callback meanwhile */
};

/* Appends "processId" to params that calls_begin() began. */
void process_begin(
    const struct execd_process *p, struct buf *b, struct json_writer *w);

/* While its events are handed out it stays, whatever a callback frees. */
void process_enter(struct execd_process *p);
void process_leave(struct execd_process *p);

/* Asks for what is missing behind p->last. */
void process_read(struct execd_process *p);
/* The last event: it was not started, or its state is unknown. */
void process_fail(struct execd_process *p, int code, const char *message);

/* Decode one event; false: it is malformed. */
bool event_decode(struct event *e, const char *method, size_t len,
    const struct json_value *params);
bool event_decode_chunk(struct event *e, const struct json_value *chunk);
void event_decode_exit(struct execd_exit *how, const struct json_value *params);

#endif
