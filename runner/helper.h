/*
 * The runner's side of its file helper: a process of this same program that
 * serves the fs/ methods of the attached connection, one after the other, so
 * that a slow disk or a large tree stalls nothing else. Its answers are
 * passed on as they come.
 */
#ifndef HELPER_H
#define HELPER_H

#include "request.h"

/* Hands a request on, starting the helper if there is none. Always 0 or
 * RPC_PENDING; an error is answered. */
int helper_forward(struct request *r, const char *text, size_t len);

/* The client reads again. */
void helper_resume(struct session *s);

/* The connection is over, and its file handles with it. */
void helper_stop(struct session *s);

#endif
