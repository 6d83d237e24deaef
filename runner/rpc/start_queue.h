/* SPDX-License-Identifier: ISC */
/*
 * Starts whose patterns are looked for beside the loop (pattern_scan.h), and
 * what must wait for them: later starts, so that they keep their order, and
 * requests for a process that is about to be. Everything else is answered
 * meanwhile. They end with their connection and are not carried out then.
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

/* Must that request wait for one that is held? */
bool start_queue_is_before(const struct session *s, const struct request *r,
    const struct rpc_method *method, const struct rpc_message *m);

/* Holds it, behind all others; the first one is looked for. Always
 * RPC_PENDING, or answers that too many wait. */
int start_queue_hold(struct request *r, const struct rpc_method *method,
    const struct rpc_message *m, const char *text, size_t len);

/* Goes on with the first one, for which that was found (NULL: it asks anew),
 * and with those after it. */
void start_queue_resume(struct session *s, const struct resolve_matches *found);

/* The connection is over. */
void start_queue_clear(struct session *s);

#endif
