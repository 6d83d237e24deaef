/* SPDX-License-Identifier: ISC */
/*
 * Holds starts whose patterns are scanned outside the loop (pattern_scan.h),
 * and the requests that must wait for them: later starts, to keep the order,
 * and requests for a process that is not started yet. Everything else is
 * answered meanwhile. Held requests end with their connection and are then not
 * carried out.
 */
#ifndef START_QUEUE_H
#define START_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "queue.h"

struct held_start;
struct request;
struct resolve_matches;
struct rpc_message;
struct rpc_method;
struct session;

struct start_queue {
	STAILQ_HEAD(, held_start) held; /* in the order of requests */
	unsigned count;
};

void start_queue_init(struct start_queue *q);

/* Returns the process id that the request names, or an empty slice. It points
 * into the message. */
struct slice start_queue_process_of(const struct rpc_message *m);

/* Tells whether the request must wait for one that is held. */
bool start_queue_is_before(const struct session *s, const struct request *r,
    const struct rpc_method *method, const struct rpc_message *m);

/*
 * Holds the request behind all others and scans for the first one. Returns
 * RPC_PENDING, or answers that too many requests wait.
 */
int start_queue_hold(struct request *r, const struct rpc_method *method,
    const struct rpc_message *m, const char *text, size_t len);

/*
 * Continues with the first request, for which `found` was found (NULL: it asks
 * again), and with those after it.
 */
void start_queue_resume(struct session *s, const struct resolve_matches *found);

/* The connection has ended; drops all held requests. */
void start_queue_clear(struct session *s);

#endif
