/*
 * The one table of what a session answers, and the dispatcher.
 */
#ifndef METHODS_H
#define METHODS_H

#include "params.h"
#include "request.h"

/* Acts on decoded, permitted parameters and answers. 0, or RPC_PENDING when
 * the answer comes later (the handler took the id). */
typedef int method_fn(struct request *r, const union method_params *p);

#define RPC_PENDING 1

/* What a file method does with the disk. */
enum file_use {
	FILE_READS,   /* names, metadata or content */
	FILE_CHANGES, /* anything */
	FILE_OPENS,   /* a handle: its mode says which of the two */
	FILE_HANDLE,  /* within what a handle was opened for */
	FILE_CLOSES,  /* a handle */
};

struct rpc_method {
	const char *name;
	enum method_family family;
	unsigned when; /* session_state mask */
	params_fn *params;
	method_fn *method; /* NULL: a helper's */
	enum helper_kind helper;
	enum file_use use; /* of HELPER_FILES */
};

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

/* What sandbox_find() is asked for a start; *envp, which the caller frees, is
 * the command's environment, NULL when it has a NUL byte inside. */
struct sandbox_request method_process_wants(
    struct session *s, const struct process_start_params *p, char ***envp);

/* A request that was held, as if it came now: answered, or r->unscanned. */
void methods_repeat(struct request *r, const char *text, size_t len);

/* One message of the client: answered, or the connection ends. */
void methods_dispatch(struct client *c, char *text, size_t len);

#endif
