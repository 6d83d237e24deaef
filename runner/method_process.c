/*
 * The process/ methods (PROTOCOL.md section 7).
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "audit.h"
#include "environment.h"
#include "log.h"
#include "methods.h"
#include "waiter.h"

#define TTY_ROWS 24
#define TTY_COLS 80

/* --- process/start ------------------------------------------------------ */

/* A copy of the strings as argv[], argv[0] replaced by arg0 if there is one.
 * NULL: a NUL byte inside. One free() frees it. */
static char **
build_argv(const struct process_start_params *p)
{
	size_t n = 0, bytes = p->arg0.len + 1;
	char **argv, *at;

	for (const struct json_value *v = p->argv->first; v; v = v->next)
		bytes += v->text.len + 1;
	argv = xmalloc((p->argv->count + 1) * sizeof(char *) + bytes);
	at = (char *)(argv + p->argv->count + 1);
	for (const struct json_value *v = p->argv->first; v; v = v->next) {
		struct slice s = n == 0 && p->has_arg0 ? p->arg0 : v->text;

		if (memchr(s.ptr, '\0', s.len) != NULL) {
			free(argv);
			return NULL;
		}
		argv[n++] = at;
		memcpy(at, s.ptr, s.len);
		at += s.len;
		*at++ = '\0';
	}
	argv[n] = NULL;
	return argv;
}

/* The checks behind decoding and state, in the order of section 7.1. Answers
 * and returns false when one fails. */
static bool
check_start(struct request *r, const struct process_start_params *p)
{
	struct session *s = r->session;
	const struct slice *uri = &p->cwd.uri;
	char error[ARGS_ERROR_MAX];

	if (p->cwd.foreign)
		reply_error(r->channel, &r->id, RPC_INVALID_PARAMS,
		    "cwd URI `%.*s` is "
		    "not valid on this exec-server host: '%.*s' is invalid on "
		    "'linux'",
		    (int)uri->len, uri->ptr, (int)uri->len, uri->ptr);
	else if (p->argv->count == 0)
		reply_error(r->channel, &r->id, RPC_INVALID_PARAMS,
		    "argv must not be empty");
	else if (p->has_sandbox &&
		 sandbox_context_check_cwd(&p->sandbox, error) < 0)
		reply_error(
		    r->channel, &r->id, RPC_INVALID_PARAMS, "%s", error);
	else if (p->enforce_managed_network || p->has_network_proxy)
		reply_error(r->channel, &r->id, RPC_INVALID_PARAMS, "%s",
		    SANDBOX_UNENFORCEABLE);
	else if (session_find(s, p->process_id) != NULL)
		reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "process %.*s already exists", (int)p->process_id.len,
		    p->process_id.ptr);
	else if (p->argv->first->text.len == 0)
		reply_error(r->channel, &r->id, RPC_INTERNAL,
		    "missing program for %s "
		    "spawn",
		    p->tty ? "PTY" : "pipe");
	else
		return true;
	return false;
}

/* Starts it into the session, or answers why not. */
static struct session_process *
start(struct request *r, const struct process_start_params *p, char **argv,
    char **envp, struct nest *nest)
{
	struct session *s = r->session;
	_cleanup_free_ char *program =
	    xstrndup(p->argv->first->text.ptr, p->argv->first->text.len);
	_cleanup_free_ char **candidates =
	    spawn_candidates(program, environment_get(envp, "PATH"));
	struct spawn_request request = {
		.nest = nest,
		.candidates = (const char *const *)candidates,
		.argv = argv,
		.envp = envp,
		.cwd = p->cwd.path,
		.tty = p->tty,
		.rows = TTY_ROWS,
		.cols = TTY_COLS,
		.pipe_stdin = p->pipe_stdin,
		.parent_death_signal = !s->config.pid_namespace,
		.null_fd = s->null_fd,
	};
	struct session_process *sp = session_process_new(s, p->process_id);
	bool enforcing;
	const char *step;
	int err = process_start(&sp->process, s->base, &s->groups, &request,
	    s->config.retention_bytes, &session_observer, sp, &step,
	    &enforcing);

	if (err < 0 && enforcing) {
		log_error(err, "sandbox: %s", step);
		reply_error(r->channel, &r->id, RPC_INVALID_PARAMS, "%s",
		    SANDBOX_UNENFORCEABLE);
		free(sp);
		return NULL;
	}
	if (err < 0) {
		log_debug("process start: %s: %s", step, strerror(-err));
		reply_os_error(r->channel, &r->id, err);
		free(sp);
		return NULL;
	}
	session_add(s, sp);
	audit_started(s, sp, argv, p->cwd.path);
	return sp;
}

int
method_process_start(struct request *r, const union method_params *params)
{
	const struct process_start_params *p = &params->process_start;
	struct session *s = r->session;
	_cleanup_free_ char **argv = NULL;
	_cleanup_free_ char **envp = NULL;
	char error[ARGS_ERROR_MAX];
	struct nest *nest = NULL;
	struct session_process *sp;
	struct json_writer w;

	if (!check_start(r, p))
		return 0;
	argv = build_argv(p);
	if (argv == NULL)
		return reply_error(r->channel, &r->id, RPC_INTERNAL,
		    "nul byte found in provided data");
	envp = environment_build(
	    s->env, p->has_env_policy ? &p->env_policy : NULL, p->env);
	if (envp == NULL)
		return reply_error(r->channel, &r->id, RPC_INTERNAL,
		    "data provided contains a nul byte");
	if (p->has_sandbox && sandbox_find(&s->sandbox, &p->sandbox,
				  p->cwd.path, &nest, error) < 0)
		return reply_error(
		    r->channel, &r->id, RPC_INVALID_PARAMS, "%s", error);
	sp = start(r, p, argv, envp, nest);
	if (sp == NULL)
		return 0;
	w = reply_begin(r->channel, &r->id);
	json_begin(&w, '{');
	json_key(&w, "processId");
	json_string(&w, sp->id, sp->id_len);
	json_key(&w, "sandboxType");
	json_cstring(&w, nest != NULL ? "linuxSeccomp" : "none");
	json_end(&w, '}');
	reply_end(r->channel, &w);
	return 0;
}

/* --- process/read ------------------------------------------------------- */

int
method_process_read(struct request *r, const union method_params *params)
{
	const struct process_read_params *p = &params->process_read;
	struct session *s = r->session;
	struct process_query query = { p->after_seq, p->max_bytes };
	struct session_process *sp = session_find(s, p->process_id);

	if (sp == NULL)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "unknown process id %.*s", (int)p->process_id.len,
		    p->process_id.ptr);
	if (p->wait_ms == 0 || s->input_ended ||
	    process_state_has_news(&sp->process.state, p->after_seq)) {
		waiter_reply(sp, &r->id, &query);
		return 0;
	}
	if (s->waiting >= REQUESTS_WAITING_MAX)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "too many waiting "
		    "requests: limit is %d",
		    REQUESTS_WAITING_MAX);
	waiter_add(sp, &r->id, &query, p->wait_ms);
	return RPC_PENDING;
}

/* --- process/write ------------------------------------------------------ */

static int
reply_status(struct channel *ch, const struct rpc_id *id, const char *status)
{
	struct json_writer w = reply_begin(ch, id);

	json_begin(&w, '{');
	json_key(&w, "status");
	json_cstring(&w, status);
	json_end(&w, '}');
	reply_end(ch, &w);
	return 0;
}

static int
reply_written(
    struct channel *ch, const struct rpc_id *id, enum input_status status)
{
	switch (status) {
	case INPUT_ACCEPTED:
		return reply_status(ch, id, "accepted");
	case INPUT_TERMINATED:
		return reply_error(
		    ch, id, RPC_INTERNAL, "failed to write to process stdin");
	case INPUT_FULL:
		return reply_error(ch, id, RPC_MALFORMED,
		    "too much unread "
		    "standard input: limit is %d writes and %u bytes",
		    INPUT_WAITING_MAX, INPUT_WAITING_BYTES);
	default:
		return reply_status(ch, id, "stdinClosed");
	}
}

/* A write that waits for room in the queue. It may outlive its connection;
 * then nobody is told. */
struct pending_write {
	struct session *session;
	uint32_t generation;
	struct rpc_id id;
};

static void
pending_write_answer(void *arg, enum input_status status)
{
	struct pending_write *w = arg;
	struct session *s = w->session;

	if (channel_is_open(&s->channel) && s->generation == w->generation) {
		s->waiting--;
		reply_written(&s->channel, &w->id, status);
	}
	rpc_id_clear(&w->id);
	free(w);
}

int
method_process_write(struct request *r, const union method_params *params)
{
	const struct process_write_params *p = &params->process_write;
	struct session *s = r->session;
	struct session_process *sp = session_find(s, p->process_id);
	struct pending_write *w;
	enum input_status status;

	if (sp == NULL)
		return reply_status(r->channel, &r->id, "unknownProcess");
	w = xcalloc(1, sizeof(*w));
	*w = (struct pending_write){ s, s->generation, { 0 } };
	status = input_write(
	    &sp->process.input, p->write_id, p->chunk, pending_write_answer, w);
	if (status == INPUT_WAITING) {
		w->id = r->id;
		r->id = (struct rpc_id){ 0 };
		s->waiting++;
		return RPC_PENDING;
	}
	free(w);
	return reply_written(r->channel, &r->id, status);
}

/* --- process/signal, process/terminate ---------------------------------- */

int
method_process_signal(struct request *r, const union method_params *params)
{
	struct session_process *sp =
	    session_find(r->session, params->process_signal.process_id);

	if (sp != NULL)
		process_signal(&sp->process, SIGINT);
	return reply_empty(r);
}

int
method_process_terminate(struct request *r, const union method_params *params)
{
	struct session_process *sp =
	    session_find(r->session, params->process_terminate.process_id);
	bool running = sp != NULL && process_terminate(&sp->process);
	struct json_writer w = reply_begin(r->channel, &r->id);

	json_begin(&w, '{');
	json_key(&w, "running");
	json_bool(&w, running);
	json_end(&w, '}');
	reply_end(r->channel, &w);
	return 0;
}
