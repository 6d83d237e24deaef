/* SPDX-License-Identifier: ISC */
/*
 * A request that is being answered, and the functions that answer it. A handler
 * answers once: now, or later through a waiter that keeps the id.
 */
#pragma once

#include "base.h"
#include "channel.h"
#include "intake.h"
#include "jsonrpc.h"

struct client;
struct session;
struct snapshot;
struct start;

/* What a request that is not answered yet waits for. */
enum request_waits {
	WAITS_FOR_NOTHING,
	WAITS_FOR_FILES, /* the answers of earlier ones that change files */
	WAITS_FOR_BUILD, /* until somebody else has opened .slow, and
			    decided about its policy (build.h) */
	WAITS_FOR_STATE, /* that .capture takes of a login shell */
	WAITS_FOR_EXEC,	 /* of a process that is STARTING */
};

/* Returned by a handler that answers later; it took the id. */
#define RPC_PENDING 1

struct request {
	struct channel *channel; /* where the answer goes */
	struct session *session;
	struct client *client; /* whose request it is; NULL in a helper */
	struct rpc_id id;      /* owned by the dispatcher; rpc_id_take() */
	struct spool *spool;   /* owned by the dispatcher too; NULL: none */
	enum request_waits waits;
	char **slow;	 /* owned by the dispatcher too; NULL: none */
	bool opened;	 /* they were */
	unsigned builds; /* how often it waited for that */
	const struct snapshot *capture;
	/* Its number among those of the session that change files; of a start,
	 * that of the last one before it. 0: none. */
	uint64_t change;
	struct start *start; /* a start that has begun; owned as the id */
};

/* How many requests of one session may wait for an answer. */
#define REQUESTS_WAITING_MAX 4096

/* Begins a result, which is an object. The writer is where its members belong;
 * reply_end() ends it. */
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

/* Why a command was not started, as the peer names it. */
#define KIND_NOT_FOUND	       "spawnNotFound"
#define KIND_PERMISSION_DENIED "spawnPermissionDenied"
#define KIND_FAILED	       "spawnFailed"
#define KIND_PREPARATION       "sandboxPreparation"
#define KIND_UNAVAILABLE       "sandboxUnavailable"

/* Like reply_error, with data {"kind": kind}. NULL: without data. */
int reply_error_kind(struct channel *ch, const struct rpc_id *id, int code,
    const char *kind, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* Answers with -32603 "TEXT (os error N)". err is -errno. */
int reply_os_error(struct channel *ch, const struct rpc_id *id, int err);

/*
 * A helper's side of its channel. Requests come from the runner, one after
 * another; answers carry the number of their request.
 *
 * Answers m, or keeps the id and answers later. A later answer must carry the
 * number that r->channel->tag holds now.
 */
typedef void serve_fn(struct request *r, struct rpc_message *m);

/*
 * Serves on CONTROL_FD until the runner closes it. `drained` may be NULL; it is
 * called when everything is written after the channel was congested.
 */
void serve(struct event_base *base, const char *label, serve_fn *answer,
    void (*drained)(void));
