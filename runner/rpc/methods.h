/* SPDX-License-Identifier: ISC */
/*
 * The table of all methods that a session answers, the dispatcher, and what
 * serves a session with them.
 */
#ifndef METHODS_H
#define METHODS_H

#include <stdbool.h>
#include <stddef.h>

#include "params.h"
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
 * Starts p's command in the session. NULL: the request was answered with the
 * reason, or it is r->unscanned.
 */
struct session_process *method_process_begin(
    struct request *r, const struct process_start_params *p);

struct snapshot;

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

/* --- watches.c ---------------------------------------------------------- */

/*
 * fs/watch: tells the client about every change of a file or a directory.
 * Watches belong to the connection.
 */

struct session;

/* The connection has ended; removes all watches. */
void watches_stop(struct session *s);

/* The client reads again. */
void watches_resume(struct session *s);

/*
 * fs/watchMissing: tells the client once when a missing path appears, or when
 * the present one changes. There is one for each connection; removes it.
 */
void watch_stop(struct session *s);

/* --- start_queue.c ------------------------------------------------------ */

/*
 * Holds starts whose patterns are scanned outside the loop (pattern_scan.h),
 * and the requests that must wait for them: later starts, to keep the order,
 * and requests for a process that is not started yet. Everything else is
 * answered meanwhile. Held requests end with their connection and are then not
 * carried out.
 */

struct ceiling;
struct held_start;
struct request;
struct resolve_matches;
struct rpc_message;
struct rpc_method;
struct sandbox_request;
struct slow_mounts;

struct start_queue {
	STAILQ_HEAD(, held_start) held; /* in the order of requests */
	unsigned count;
};

void start_queue_init(struct start_queue *q);

/* Tells whether the request must wait for one that is held. */
bool start_queue_is_before(const struct session *s, const struct request *r,
    const struct rpc_method *method, const struct rpc_message *m);

/*
 * Holds the request behind all others and scans for the first one. Returns
 * RPC_PENDING, or answers that too many requests wait.
 */
int start_queue_hold(struct request *r, const struct rpc_message *m,
    const char *text, size_t len);

/*
 * Continues with the first request, for which `found` was found (NULL: it asks
 * again), and with those after it.
 */
void start_queue_resume(struct session *s, const struct resolve_matches *found);

/* The connection has ended; drops all held requests. */
void start_queue_clear(struct session *s);

/*
 * Starts whose directory or program lies on a file system that may not answer
 * (slow_paths.h), and file requests of which the runner itself opens paths: a
 * watch, and a policy with paths there. A process forked from the runner opens
 * these paths first; the start is carried out when that has come back, or
 * refused after SLOW_START_SECONDS. Only requests for the process that is about
 * to be wait with it: everything else is answered meanwhile, other starts too.
 * Starts that wait end with their connection and are not carried out then.
 */

/* How long a file system has to answer. */
#define SLOW_START_SECONDS 10

/* Processes that open paths, of one session, at a time. Whoever waits in the
 * kernel for a FUSE server cannot be killed, and counts. */
#define SLOW_START_PROBES_MAX 16

/* Tells whether the request must wait for one that is held: the start of its
 * process, or the opening of its file. */
bool slow_start_is_before(const struct session *s, const struct request *r,
    const struct rpc_method *method, const struct rpc_message *m);

/* Holds a start until r->slow are opened, or a request behind one. Returns
 * RPC_PENDING, or answers that too many wait. */
int slow_start_hold(struct request *r, const struct rpc_method *method,
    const struct rpc_message *m, const char *text, size_t len);

/*
 * Adds the slow ones of the paths that the sandbox of a request opens: those of
 * its policy and the operator's.
 */
void slow_start_add_policy(char ***paths, const struct slow_mounts *m,
    const struct ceiling *ceiling, const struct sandbox_request *wanted);

/* Goes on with the starts that wait for the state of a login shell. */
void slow_start_captured(struct session *s, const struct snapshot *n);

/* The connection has ended; drops all that is held. */
void slow_start_clear(struct session *s);

/* --- snapshots.c -------------------------------------------------------- */

/*
 * process/start with shellSnapshot: the first command of a scope waits until
 * the state of its login shell is taken, and the next ones start without the
 * login. Where it cannot be taken, commands start with the login.
 */

#define SNAPSHOT_SCOPE_MAX_BYTES 256

struct process_observer;
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

#endif
