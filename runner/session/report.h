/* SPDX-License-Identifier: ISC */
/*
 * Writes the state of a process and how it ended, as process/wait answers it
 * (doc/protocol.md section 17).
 */
#pragma once

#include <event2/event_struct.h>

#include "control.h"
#include "process_state.h"
#include "request.h"

struct session_process;

/*
 * Writes members into an object that is open: running, exitCode, closed, and
 * how it ended: signal, core, timedOut, oomKilled, rusage.
 */
void report_write(struct json_writer *w, const struct session_process *p);

/* Answers process/wait. */
void report_reply(struct channel *ch, const struct session_process *p,
    const struct rpc_id *id);

/*
 * Finds out why a command ended: by itself, because somebody ended it, or at
 * which limit.
 */

struct session_process;

/* Only for a command that was reaped. */
enum end_cause end_cause(const struct session_process *p);

/*
 * A request that waits for a process: process/read with waitMs waits for news,
 * process/wait for the end. It owns its request id and ends with its
 * connection.
 */

struct waiter {
	TAILQ_ENTRY(waiter) link; /* session_process.waiters */
	struct session_process *process;
	struct client *client;
	struct rpc_id id; /* owned */
	bool for_end;	  /* process/wait; has no query */
	struct process_query query;
	struct event timeout;
};

/*
 * Waits for news of p, or without a query for its end, until wait_ms have
 * passed. UINT64_MAX is for ever. Takes the request's id and returns
 * RPC_PENDING, or answers that too many requests wait.
 */
int waiter_add(struct request *r, struct session_process *p,
    const struct process_query *query, uint64_t wait_ms);

/* Called after an event of p: answers the waiters for which it is news. */
void waiter_wake(struct session_process *p);

/*
 * End a client's waiters for p: the first answers them with what there is, the
 * second drops them.
 */
void waiter_answer_all(struct session_process *p, const struct client *c);
void waiter_drop_all(struct session_process *p, const struct client *c);

/* Answers process/read. */
void waiter_reply(struct channel *ch, const struct session_process *p,
    const struct rpc_id *id, const struct process_query *query);
