/* SPDX-License-Identifier: ISC */
/*
 * The table of all methods that a session answers, the dispatcher, and what
 * serves a session with them.
 */
#pragma once

#include "build.h"
#include "request.h"
#include "rpc_method.h"

extern const struct rpc_method rpc_methods[];
extern const size_t rpc_methods_count;

/* Finds a method by its name in the protocol. NULL: unknown. */
const struct rpc_method *rpc_method_find(struct slice name);

#define METHOD(name, wire, family, when, repeat) method_fn method_##name;
#define FILE_METHOD(name, wire, family, use, repeat)
#define HTTP_METHOD(name, wire)
#include "methods.def"
#include "queue.h"
#undef METHOD
#undef FILE_METHOD
#undef HTTP_METHOD

/*
 * Finds the process with that id. NULL: there is none, and the request was
 * answered.
 */
struct session_process *method_find_process(struct request *r, struct slice id);

/*
 * Starts p's command in the session, or goes on with that. NULL: the request
 * waits (r->waits), or was answered with the reason.
 */
struct session_process *method_process_begin(
    struct request *r, const struct process_start_params *p);

/* What a start that is not answered has; NULL is fine. */
void start_free(struct start *st);

/* Writes to a process's standard input, and answers, perhaps later: `reply`
 * says in the method's words whether it was accepted or the input is closed. */
typedef int written_fn(struct channel *ch, const struct rpc_id *id,
    struct slice process, bool accepted);
int method_write(struct request *r, struct session_process *sp,
    struct slice write_id, struct slice chunk, written_fn *reply);

/* Returns the id of the process that is started. It points into st. */
struct slice start_process_id(const struct start *st);

/* Takes what came out of a process that was STARTING; NULL: it runs. Returns
 * false if it is not that of the start. */
bool start_take(
    struct start *st, const struct process *p, const struct spawn_fault *fault);

/* The path for which the execution waits, most likely. */
const char *start_path(const struct start *st);

/*
 * Carries out a request, or goes on with one that has waited. It is answered or
 * taken over, or waits for r->waits. p is decoded if the row has a function.
 */
void methods_carry_out(struct request *r, const struct rpc_method *m,
    struct rpc_message *msg, const union method_params *p, const char *text,
    size_t len);

/*
 * Serves a session: connects methods, helpers, held requests and watched
 * directories with the one interface that the session knows. The state is kept
 * in methods.c, because a program serves only one session.
 */
extern const struct session_server server;

/* --- watches.c ---------------------------------------------------------- */

/*
 * fs/watch: tells the client about every change of a file or a directory.
 * Watches belong to the connection.
 */

/* The connection has ended; removes all watches. */
void watches_stop(struct session *s);

/* The client reads again. */
void watches_resume(struct session *s);

/*
 * fs/watchMissing: tells the client once when a missing path appears, or when
 * the present one changes. There is one for each connection; removes it.
 */
void watch_stop(struct session *s);

/* --- starting.c --------------------------------------------------------- */

/*
 * A process is STARTING until its start is answered. A start that waits for
 * files, patterns or a login shell holds up nobody else. Requests for its
 * process wait in it, in their order; everything else is answered meanwhile. A
 * file request of which the runner itself opens slow paths (slow_paths.h) waits
 * likewise, with those for the handle that it opens. A request is parsed once:
 * what was read of it is kept. What waits ends with its connection.
 */

struct slow_mounts;

/* How long other requests and file systems have to answer. */
#define START_WAIT_SECONDS BUILD_WAIT_SECONDS

/* If what the request names is not there before another request is answered,
 * takes the request over and returns true. */
bool starting_take(struct request *r, const struct rpc_method *method,
    struct rpc_message *m, const char *text, size_t len);

/* Holds a request until what it waits for is there. Returns RPC_PENDING, or
 * answers that too many wait. Takes the message over. */
int starting_hold(struct request *r, const struct rpc_method *method,
    struct rpc_message *m, const char *text, size_t len);

/*
 * Adds the slow ones of the paths that the sandbox of a request opens: those of
 * its policy and the operator's.
 */
void slow_start_add_policy(char ***paths, const struct slow_mounts *m,
    const struct ceiling *ceiling, const struct sandbox_request *wanted);

/* Goes on with the starts that wait for the state of a login shell. */
void starting_captured(struct session *s, const struct snapshot *n);

/* Other limits are in force: what is decided now, is decided anew. */
void starting_decide_again(struct session *s);

/* Returns the number of the oldest request that changes files and is not
 * answered; UINT64_MAX: there is none. */
uint64_t starting_oldest_change(const struct session *s);

/* A file request was answered: goes on soon with the starts after it. */
void starting_look(struct session *s);

/* The program of a process that was STARTING runs, or does not. */
void starting_executed(
    struct session_process *sp, const struct spawn_fault *fault);

/* A connection that only watches has ended. */
void starting_forget(const struct client *c);

/* The connection has ended; drops all that is held. */
void starting_clear(void);

/* --- snapshots.c -------------------------------------------------------- */

/*
 * process/start with shellSnapshot: the first command of a scope waits until
 * the state of its login shell is taken, and the next ones start without the
 * login. Where it cannot be taken, commands start with the login.
 */

#define SNAPSHOT_SCOPE_MAX_BYTES 256

struct shell_state;
struct snapshot_shell;

/* Answers and returns false if what a start asks for is impossible. */
bool snapshot_check(struct request *r, const struct process_start_params *p);

/*
 * Returns what is known of the state that a start asks for; it may be nothing
 * yet. NULL: it asks for none, or too many are being taken.
 */
struct snapshot *snapshot_find(
    struct session *s, const struct process_start_params *p);

/* NULL: it is not there. */
const struct shell_state *snapshot_state(const struct snapshot *n);
const struct snapshot_shell *snapshot_shell(const struct snapshot *n);

/* Tells whether it is being taken, and whether it may be tried now. */
bool snapshot_is_captured(const struct snapshot *n);
bool snapshot_is_due(const struct snapshot *n);

/* Returns the text that a capture runs, which the caller frees. */
char *snapshot_script(struct snapshot *n);

/* The capture was started, with the observer below, or could not be. */
void snapshot_begun(
    struct snapshot *n, struct session_process *sp, char *const *envp);
void snapshot_failed(struct snapshot *n);

extern const struct process_observer snapshot_observer;
