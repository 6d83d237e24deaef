/* SPDX-License-Identifier: ISC */
/*
 * The one table of what a session answers, and the dispatcher.
 */
#ifndef METHODS_H
#define METHODS_H

#include "params.h"
#include "request.h"
#include "rpc_method.h"

extern const struct rpc_method rpc_methods[];
extern const size_t rpc_methods_count;

/* By its name on the wire; NULL: unknown. */
const struct rpc_method *rpc_method_find(struct slice name);

#define METHOD(name, wire, family, when) method_fn method_##name;
#define FILE_METHOD(name, wire, family, use)
#define HTTP_METHOD(name, wire)
#include "methods.def"
#undef METHOD
#undef FILE_METHOD
#undef HTTP_METHOD

/* The process of that id, or NULL after answering that there is none. */
struct session_process *method_find_process(struct request *r, struct slice id);

/* Starts p's command into the session, or answers why not: NULL. */
struct session_process *method_process_begin(
    struct request *r, const struct process_start_params *p);

/* What sandboxes_find() is asked for a start; *envp, which the caller frees, is
 * the command's environment, NULL when it has a NUL byte inside. */
struct sandbox_request method_process_wants(
    struct session *s, const struct process_start_params *p, char ***envp);

/* A request that was held, as if it came now: answered, or r->unscanned. */
void methods_repeat(struct request *r, const char *text, size_t len);

/* One message of the client: answered, or the connection ends. */
void methods_dispatch(struct client *c, char *text, size_t len);

#endif
