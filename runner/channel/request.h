/* SPDX-License-Identifier: ISC */
/*
 * A request being answered, and the ways to answer it. A handler answers
 * once: now, or later through a waiter that keeps the id.
 */
#ifndef REQUEST_H
#define REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "channel.h"
#include "jsonrpc.h"
#include "spool.h"

struct client;
struct session;

/* What a handler returns when the answer comes later: it took the id. */
#define RPC_PENDING 1

struct request {
	struct channel *channel; /* where the answer goes */
	struct session *session;
	struct client *client; /* whose request; NULL in a helper */
	struct rpc_id id;      /* owned by the dispatcher; rpc_id_take() */
	struct spool *spool;   /* likewise; NULL: the content is in the text */
	bool unscanned; /* not answered: its patterns are to be looked for */
};

/* Requests of one session that may wait for their answer at a time. */
#define REQUESTS_WAITING_MAX 4096

/* The writer stands where the result value is due; end with reply_end(). */
struct json_writer reply_begin(struct channel *ch, const struct rpc_id *id);
void reply_end(struct channel *ch, struct json_writer *w);

/* "result": {} */
int reply_empty(struct request *r);

/* Always 0, so that a handler can return it. */
int reply_error(struct channel *ch, const struct rpc_id *id, int code,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* As reply_error, for texts with a client's bytes of any length. */
int reply_error_text(struct channel *ch, const struct rpc_id *id, int code,
    const char *text, size_t len);

/* -32603 "TEXT (os error N)" */
int reply_os_error(struct channel *ch, const struct rpc_id *id, int err);

#endif
