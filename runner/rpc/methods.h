/* SPDX-License-Identifier: ISC */
/*
 * The table of all methods that a session answers, the dispatcher, and what
 * serves a session with them.
 */
#ifndef METHODS_H
#define METHODS_H

#include "params.h"
#include "request.h"
#include "rpc_method.h"

extern const struct rpc_method rpc_methods[];
extern const size_t rpc_methods_count;

/* Finds a method by its name in the protocol. NULL: unknown. */
const struct rpc_method *rpc_method_find(struct slice name);

#define METHOD(name, wire, family, when) method_fn method_##name;
#define FILE_METHOD(name, wire, family, use)
#define HTTP_METHOD(name, wire)
#include "methods.def"
#undef METHOD
#undef FILE_METHOD
#undef HTTP_METHOD

/*
 * Finds the process with that id. NULL: there is none, and the request was
 * answered.
 */
struct session_process *method_find_process(struct request *r, struct slice id);

/*
 * Starts p's command in the session. NULL: the request was answered with the
 * reason, or it is r->unscanned.
 */
struct session_process *method_process_begin(
    struct request *r, const struct process_start_params *p);

/*
 * Returns what sandboxes_find() is asked for a start. *envp is the command's
 * environment, which the caller frees; NULL if it would contain a NUL byte.
 */
struct sandbox_request method_process_wants(
    struct session *s, const struct process_start_params *p, char ***envp);

/*
 * Carries out a held request as if it came now. It is answered, or r->unscanned
 * is set.
 */
void methods_repeat(struct request *r, const char *text, size_t len);

/* Repeats a request that waited for its paths: it is answered, or held for its
 * patterns. */
void methods_resume(struct request *r, const char *text, size_t len);

/*
 * Serves a session: connects methods, helpers, held requests and watched
 * directories with the one interface that the session knows. The state is kept
 * in methods.c, because a program serves only one session.
 */
extern const struct session_server server;

#endif
