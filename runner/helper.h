/*
 * The runner's side of its helpers, processes that serve some methods of the
 * attached connection so that nothing slow stalls the rest: the file helper
 * (this same program; fs/ methods, one after the other) and execd-http. Their
 * answers are passed on as they come. They end with their connection.
 */
#ifndef HELPER_H
#define HELPER_H

#include "request.h"

/* Hands a request on, starting the helper if there is none. Always 0 or
 * RPC_PENDING; an error is answered. */
int helper_forward(
    struct request *r, enum helper_kind kind, const char *text, size_t len);

/* The client reads again. */
void helper_resume_all(struct session *s);

/* The connection is over, and with it file handles and HTTP exchanges. */
void helper_stop_all(struct session *s);

#endif
