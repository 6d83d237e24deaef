/* SPDX-License-Identifier: ISC */
/*
 * execctl relay: a client on standard input and output, which speaks to the
 * server as if it was connected itself. The library resumes the session, so the
 * client sees no cut. stdio_relay.c reads and writes, relay_request.c passes
 * requests and the events of processes on.
 */
#pragma once

#include "execctl.h"
#include "jsonrpc.h"

struct relay {
	struct execctl *ctl;
	struct output out;
	struct source in;
	struct source signals;
	struct buf line; /* what was read of a message */
	size_t searched; /* bytes of it that hold no newline */
	bool ready;	 /* initialize was answered */
	bool eof;	 /* the client sends nothing more */
	bool over;
	bool was_lost; /* the relay has handled the loss of the connection */
	int code;
	unsigned int unanswered;
	uint64_t asked; /* the last number of a request of the server */
	TAILQ_HEAD(, relay_process) processes;
	TAILQ_HEAD(, relay_stream) streams; /* HTTP bodies that come */
	bool watching;			    /* fs/watchMissing is in force */
	uint64_t watch_id;
};

/* stdio_relay.c */
/* Runs until the client or the server is at its end. Returns the exit
 * status. */
int relay_run(struct execctl *ctl);
/* Ends the relay with this exit status. Only the first call counts. */
void relay_finish(struct relay *r, int code);
/* Writes one message to the client, and clears b. */
void relay_say(struct relay *r, struct buf *b);
void relay_say_error(
    struct relay *r, const struct rpc_id *id, int code, const char *message);

/* relay_request.c */
/* Asks the client what the server asks; arg is the relay. */
void relay_asked(void *arg, uint64_t id, const char *method,
    const struct json_value *params);
/* Passes a request of the client on. */
void relay_request(struct relay *r, const struct rpc_message *m);
/* Tells what belonged to the lost connection that it has ended. */
void relay_lost(struct relay *r);
/* A notification of the server that belongs to no process; arg is the relay. */
void relay_notified(
    void *arg, const char *method, const struct json_value *params);
/* Drops the lists. */
void relay_forget(struct relay *r);

void relay_forget_processes(struct relay *r);
