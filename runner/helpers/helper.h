/* SPDX-License-Identifier: ISC */
/*
 * The runner's side of its helpers, processes that serve some methods of the
 * attached connection so that nothing slow stalls the rest: file helpers
 * (this same program; fs/ methods, one after the other), one for the session
 * and one in each sandbox that is asked for files, and execd-http. Their
 * answers are passed on as they come. They end with their connection.
 */
#ifndef HELPER_H
#define HELPER_H

#include "file_router.h"
#include "request.h"
#include "session.h"

/* The one of that kind, in that sandbox (NULL: none), started if there is none.
 * NULL with errno. */
struct helper *helper_get(
    struct session *s, enum helper_kind kind, struct sandbox *sandbox);

struct sandbox *helper_sandbox(const struct helper *h);

/* Hands a request on; `note` is for file_router_answered(), NULL for other
 * kinds. Always RPC_PENDING. */
int helper_forward(struct helper *h, struct request *r,
    const struct file_note *note, const char *text, size_t len);

/* While helpers are far behind, their client waits. */
void helper_pause_client(struct session *s);

/* A sandbox is to make room: its helper is stopped if nothing needs it. False:
 * something does. */
bool helper_give_up(struct session *s, const struct sandbox *sandbox);

/* The client reads again. */
void helper_resume_all(struct session *s);

/* Ends the HTTP exchanges of a connection that nobody reads from any more. */
void helper_stop_http(struct session *s);

/* The connection is over, and with it file handles and HTTP exchanges. */
void helper_stop_all(struct session *s);

#endif
