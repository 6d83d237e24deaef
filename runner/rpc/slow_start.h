/* SPDX-License-Identifier: ISC */
/*
 * Starts whose directory or program lies on a file system that may not answer
 * (slow_paths.h), and file requests of which the runner itself opens paths: a
 * watch, and a policy with paths there. A process forked from the runner opens
 * these paths first; the start is carried out when that has come back, or
 * refused after SLOW_START_SECONDS. Only requests for the process that is about
 * to be wait with it: everything else is answered meanwhile, other starts too.
 * Starts that wait end with their connection and are not carried out then.
 */
#ifndef SLOW_START_H
#define SLOW_START_H

#include <stdbool.h>
#include <stddef.h>

struct ceiling;
struct request;
struct rpc_message;
struct rpc_method;
struct sandbox_request;
struct session;
struct slow_mounts;

/* How long a file system has to answer. */
#define SLOW_START_SECONDS 10

/* Processes that open paths, of one session, at a time. Whoever waits in the
 * kernel for a FUSE server cannot be killed, and counts. */
#define SLOW_START_PROBES_MAX 16

/* Must that request wait for a start that is held? */
bool slow_start_is_before(const struct session *s, const struct request *r,
    const struct rpc_method *method, const struct rpc_message *m);

/* Holds a start until r->slow are opened, or what is behind one. Always
 * RPC_PENDING, or answers that too many wait. */
int slow_start_hold(struct request *r, const struct rpc_method *method,
    const struct rpc_message *m, const char *text, size_t len);

/*
 * Adds what the sandbox of a request has to do with, as far as it is slow: the
 * paths of its policy and the operator's.
 */
void slow_start_add_policy(char ***paths, const struct slow_mounts *m,
    const struct ceiling *ceiling, const struct sandbox_request *wanted);

/* The connection is over. */
void slow_start_clear(struct session *s);

#endif
