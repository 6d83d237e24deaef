/* SPDX-License-Identifier: ISC */
/*
 * execctl relay: a client on standard input and output, which speaks to the
 * server as if it was connected itself. The library resumes the session, so the
 * client sees no cut. stdio_relay.c reads and writes, relay_request.c passes
 * requests on, relay_process.c numbers the events of processes.
 */
#ifndef EXECCTL_RELAY_H
#define EXECCTL_RELAY_H

#include "execctl.h"
#include "jsonrpc.h"
#include "output.h"

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
/* Looks at how much is queued in both directions, and reads or waits. */
void relay_balance(struct relay *r);

/* relay_request.c */
/* Asks the client what the server asks; arg is the relay. */
void relay_asked(void *arg, uint64_t id, const char *method,
    const struct json_value *params);
/* Passes a request of the client on. */
void relay_request(struct relay *r, const struct rpc_message *m);
/* What belonged to the lost connection is told its end. */
void relay_lost(struct relay *r);
/* A notification of the server that belongs to no process; arg is the relay. */
void relay_notified(
    void *arg, const char *method, const struct json_value *params);
/* Drops the lists. */
void relay_forget(struct relay *r);

/* relay_process.c */
/* Passes process/start on. params has `id'. fn gets the answer. Returns false
 * if the client has such a process already; then fn is not called. */
bool relay_start(struct relay *r, const char *id, const char *params,
    size_t len, execd_answer_fn *fn, void *arg);
void relay_forget_processes(struct relay *r);

/* Writes a value as it was parsed. */
void relay_value(struct json_writer *w, const struct json_value *v);
/* Writes a member as it was parsed. */
void relay_member(struct json_writer *w, const struct json_value *v);

#endif
