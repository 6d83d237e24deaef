/* SPDX-License-Identifier: ISC */
/*
 * Decides which helper serves which fs/ request, and when (doc/protocol.md
 * section 10, doc/sandbox.md C9). Without a policy it is the session's own file
 * helper. With a policy it is a helper inside that policy's sandbox. Requests
 * for a handle go to the helper that opened it. Requests keep their order: one
 * with a policy waits for all before it, and those after it wait for it.
 */
#pragma once

#include "base.h"
#include "build.h"
#include "queue.h"

#define FILE_HANDLES_MAX   128 /* doc/protocol.md section 14 */
#define ROUTED_HANDLES_MAX (2 * FILE_HANDLES_MAX)
#define FILE_HANDLE_ID_MAX 32

struct fs_params;
struct helper;
struct request;
struct rpc_message;
struct rpc_method;
struct session;

/*
 * What a successful answer changes about a handle. When a request with a policy
 * gets its turn, everything before it is answered, so the list of handles is
 * exact then.
 */
enum file_note_kind { FILE_NOTE_NONE, FILE_NOTE_OPEN, FILE_NOTE_CLOSE };
struct file_note {
	uint64_t change; /* as of the request (request.h) */
	enum file_note_kind kind;
	uint8_t id_len;
	char id[FILE_HANDLE_ID_MAX];
};

struct routed_handle {
	char id[FILE_HANDLE_ID_MAX];
	uint8_t id_len;
	struct helper *helper; /* NULL: it ended, and the handle with it */
	const char *lost;      /* then: how it ended */
};

struct held_request;

struct file_router {
	struct session *session;
	struct routed_handle *handles; /* owned; NULL before the first */
	size_t nhandles;
	STAILQ_HEAD(, held_request) held; /* waiting, in order */
	unsigned outstanding;		  /* forwarded but not answered */
	bool exclusive;			  /* the outstanding one has a policy */
	struct build build;		  /* for the first held one */
	uint64_t
	    changes; /* the number of the last request that changes files */
};

void file_router_init(struct file_router *f);

/* Returns the request's number among those that change files; if it changes
 * none, and begins a process, the number of the last one; else 0. */
uint64_t file_router_number(struct session *s, const struct rpc_method *method,
    const struct rpc_message *m);

/* Returns the number of the oldest one that is not answered, or UINT64_MAX. */
uint64_t file_router_oldest_change(const struct session *s);

/* Answers, forwards or holds the request. Returns 0 or RPC_PENDING. */
int file_router_take(struct request *r, const struct rpc_method *method,
    struct rpc_message *m, const char *text, size_t len);

/* A forwarded request was answered; others may get their turn now. */
void file_router_answered(struct session *s, struct helper *by,
    const struct file_note *note, bool failed);

/* Returns what sandboxes_find() is asked for a request of that method. */
struct sandbox_request file_router_wants(
    const struct rpc_method *method, const struct fs_params *p);

/* In a build (build.h): decides about the policy of the request. */
void file_router_decide(
    struct request *r, const struct rpc_method *method, struct rpc_message *m);

/* Other limits are in force: what is decided now, is decided anew. */
void file_router_decide_again(struct session *s);

/* Continues the held requests whose turn has come. */
void file_router_resume(struct session *s);

bool file_router_has_handles(const struct session *s, const struct helper *h);

/*
 * A helper is gone, and its handles with it. `how` is said to whoever uses one
 * of them before it is closed or opened again; NULL: nobody will.
 */
void file_router_forget(
    struct session *s, const struct helper *h, const char *how);

/* The connection has ended: held requests are dropped. */
void file_router_clear(struct session *s);
