/* SPDX-License-Identifier: ISC */
/*
 * A request that is being answered, and the functions that answer it. A handler
 * answers once: now, or later through a waiter that keeps the id.
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

/* Returned by a handler that answers later; it took the id. */
#define RPC_PENDING 1

struct request {
	struct channel *channel; /* where the answer goes */
	struct session *session;
	struct client *client; /* whose request it is; NULL in a helper */
	struct rpc_id id;      /* owned by the dispatcher; rpc_id_take() */
	struct spool *spool;   /* owned by the dispatcher too; NULL: none */
	bool unscanned; /* not answered: its patterns must be scanned first */
	char **slow;	/* not answered: these paths must be opened first */
	bool opened;	/* these paths were opened */
};

/* How many requests of one session may wait for an answer. */
#define REQUESTS_WAITING_MAX 4096

/* Every result is an object, and the writer is where its members belong; finish
 * with reply_end(). */
struct json_writer reply_begin(struct channel *ch, const struct rpc_id *id);
void reply_end(struct channel *ch, struct json_writer *w);

/* Answers with an empty object as result. */
int reply_empty(struct request *r);

/* Answers with an error. Always returns 0, so that a handler can return it. */
int reply_error(struct channel *ch, const struct rpc_id *id, int code,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Like reply_error, for texts that contain a client's bytes of any length. */
int reply_error_text(struct channel *ch, const struct rpc_id *id, int code,
    const char *text, size_t len);

/* Answers with -32603 "TEXT (os error N)". err is -errno. */
int reply_os_error(struct channel *ch, const struct rpc_id *id, int err);

#endif
