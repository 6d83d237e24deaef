/* SPDX-License-Identifier: ISC */
/*
 * The runner's side of its helpers. Helpers are processes that serve some
 * methods of the attached connection, so that slow work does not delay the
 * rest. File helpers are this same program and serve fs/ methods one after
 * another: one for the session, and one in each sandbox that needs it. The
 * other helper is execd-http. Answers are passed on as they come. Helpers end
 * with their connection.
 */
#pragma once

#include "file_router.h"
#include "request.h"
#include "session.h"

/*
 * Returns the helper of that kind in that sandbox (NULL: none), and starts it
 * if needed. Returns NULL with errno on failure.
 */
struct helper *helper_get(
    struct session *s, enum helper_kind kind, struct sandbox *sandbox);

/*
 * Starts the program of a helper outside of sandboxes, at the other end of the
 * channel `fd`. Returns its pid, or -1 with errno.
 */
pid_t helper_spawn(const struct session *s, enum helper_kind kind, int fd);

struct sandbox *helper_sandbox(const struct helper *h);

/*
 * Forwards a request; `note` is for file_router_answered(), NULL for other
 * kinds. Returns RPC_PENDING, or 0 if it was refused.
 */
int helper_forward(struct helper *h, struct request *r,
    const struct file_note *note, const char *text, size_t len);

/* Returns the smallest number (struct file_note) of a request that a file
 * helper has not answered, or UINT64_MAX. */
uint64_t helper_oldest_change(const struct session *s);

/* Pauses the client while helpers are far behind. */
void helper_pause_client(struct session *s);

/*
 * Asks to free a sandbox to make room: stops its helper if nothing needs it.
 * Returns false if something does.
 */
bool helper_give_up(struct session *s, const struct sandbox *sandbox);

/* The client reads again. */
void helper_resume_all(struct session *s);

/*
 * Ends the HTTP exchanges of a connection whose answers nobody reads any more.
 */
void helper_stop_http(struct session *s);

/* The connection has ended, and file handles and HTTP exchanges with it. */
void helper_stop_all(struct session *s);
