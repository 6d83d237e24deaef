/* SPDX-License-Identifier: ISC */
/*
 * A request that waits for something of a process: process/read with waitMs
 * for news, process/wait for its end. It keeps the id and dies with its
 * connection.
 */
#ifndef WAITER_H
#define WAITER_H

#include <event2/event_struct.h>

#include "process_state.h"
#include "queue.h"
#include "request.h"

struct session_process;

struct waiter {
	TAILQ_ENTRY(waiter) link; /* session_process.waiters */
	struct session_process *process;
	struct client *client;
	struct rpc_id id; /* owned */
	bool for_end;	  /* process/wait, which has no query */
	struct process_query query;
	struct event timeout;
};

/* process/read (or, without a query, process/wait): waits for news (or the
 * end), or until wait_ms are over. Takes the request's id, or answers that
 * too many wait. */
int waiter_add(struct request *r, struct session_process *p,
    const struct process_query *query, uint64_t wait_ms);

/* Something was told of p: whoever waited for it is answered. */
void waiter_wake(struct session_process *p);

/* A client's waiters for p: answered with what there is, or given up. */
void waiter_answer_all(struct session_process *p, const struct client *c);
void waiter_drop_all(struct session_process *p, const struct client *c);

/* The answer of process/read. */
void waiter_reply(struct channel *ch, const struct session_process *p,
    const struct rpc_id *id, const struct process_query *query);

#endif
