/* SPDX-License-Identifier: ISC */
/*
 * Which helper serves which fs/ request, and when (doc/protocol.md section 10,
 * doc/sandbox.md C9). Without a policy it is the session's own file helper;
 * under one it is a helper inside that policy's sandbox; what a handle was
 * opened with goes to whoever opened it. Requests keep their order: one under a
 * policy waits for all before it, and those after it wait for it.
 */
#ifndef FILE_ROUTER_H
#define FILE_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue.h"
#include "sandboxes.h"

#define FILE_HANDLES_MAX   128 /* doc/protocol.md section 14 */
#define FILE_HANDLE_ID_MAX 32

struct fs_params;
struct helper;
struct request;
struct resolve_matches;
struct rpc_message;
struct rpc_method;
struct session;

/* What an answer will say of a handle. By the time a request under a policy
 * has its turn everything is answered, so the list below is exact for it. */
enum file_note_kind { FILE_NOTE_NONE, FILE_NOTE_OPEN, FILE_NOTE_CLOSE };
struct file_note {
	enum file_note_kind kind;
	uint8_t id_len;
	char id[FILE_HANDLE_ID_MAX];
};

struct routed_handle {
	char id[FILE_HANDLE_ID_MAX];
	uint8_t id_len;
	struct helper *helper;
};

struct held_request;

struct file_router {
	struct routed_handle handles[2 * FILE_HANDLES_MAX]; /* open ones */
	size_t nhandles;
	STAILQ_HEAD(, held_request) held; /* in the order of requests */
	unsigned outstanding;		  /* handed on, not answered */
	bool exclusive;			  /* that one is under a policy */
	bool scanning; /* the first one waits for its patterns */
};

void file_router_init(struct file_router *f);

/* Answers, forwards or holds the request. Always 0 or RPC_PENDING. */
int file_router_take(struct request *r, const struct rpc_method *method,
    struct rpc_message *m, const char *text, size_t len);

/* One that was handed on is answered; others may have their turn now. */
void file_router_answered(struct session *s, struct helper *by,
    const struct file_note *note, bool failed);

/* What sandboxes_find() is asked for a request of that method. */
struct sandbox_request file_router_wants(
    const struct rpc_method *method, const struct fs_params *p);

/* The first one goes on with what its patterns match (NULL: it asks anew), if
 * it waits for that. */
void file_router_scanned(
    struct session *s, const struct resolve_matches *found);

/* Those whose turn has come. */
void file_router_resume(struct session *s);

bool file_router_has_handles(const struct session *s, const struct helper *h);

/* A helper is gone, and its handles with it. */
void file_router_forget(struct session *s, const struct helper *h);

/* The connection is over: who waits will not be told. */
void file_router_clear(struct session *s);

#endif
