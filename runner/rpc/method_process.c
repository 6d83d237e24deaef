/* SPDX-License-Identifier: ISC */
/*
 * The process/ methods (doc/protocol.md section 7).
 */
#include "audit.h"
#include "environment.h"
#include "methods.h"
#include "netproxy.h"
#include "program.h"
#include "report.h"
#include "session.h"
#include "shell_snapshot.h"
#include "slow_paths.h"

/* --- process/start ------------------------------------------------------ */

/* A client tells of what arrived in steps, which must be smaller. */
#define HOLD_MIN_BYTES (1u << 20)

static bool
check_retention(const struct retention_params *p, uint64_t limit_bytes)
{
	return p->head_bytes <= limit_bytes &&
	       (!p->has_tail || p->tail_bytes <= limit_bytes - p->head_bytes);
}

/*
 * Applies the options that the answer does not wait for, before there is
 * output.
 */
static void
apply_options(struct session_process *sp, const struct process_start_params *p,
    char *const *argv)
{
	struct session *s = sp->session;
	const struct retention_params *keep = &p->retention;

	session_note_command(sp, argv);
	if (p->start_id.len > 0) {
		recent_ids_add(&s->start_ids, p->start_id);
		sp->start_id = xstrndup(p->start_id.ptr, p->start_id.len);
		sp->start_id_len = p->start_id.len;
	}
	if (p->has_timeout)
		process_set_timeout(
		    &sp->process, s->base, p->timeout_ms, DEADLINE_CLIENT);
	if (s->config.command_deadline_ms > 0)
		process_set_timeout(&sp->process, s->base,
		    s->config.command_deadline_ms, DEADLINE_COMMAND);
	if (p->has_retention && keep->wait)
		process_state_wait(
		    &sp->process.state, s->config.retention_bytes);
	else if (p->has_retention && keep->hold)
		process_state_hold(&sp->process.state,
		    s->config.retention_bytes > HOLD_MIN_BYTES
			? s->config.retention_bytes
			: HOLD_MIN_BYTES);
	else if (p->has_retention)
		process_state_keep(&sp->process.state, keep->head_bytes,
		    keep->has_tail
			? keep->tail_bytes
			: s->config.retention_bytes - keep->head_bytes);
}

/*
 * A network that somebody manages needs a list of hosts. A list opens a part of
 * the network, so the policy must have one; and nothing of it is a socket of
 * the host.
 */
static bool
check_network(const struct process_start_params *p, char *error)
{
	const struct network_params *n = &p->network;

	if (p->enforce_managed_network && !n->given)
		sandboxes_refuse("managed network", error);
	else if (n->wants_unix)
		sandboxes_refuse("UNIX sockets of the host beside a list of "
				 "hosts",
		    error);
	else if (n->given && p->has_sandbox && !p->sandbox.network_enabled)
		sandboxes_refuse("a list of hosts needs a policy with network "
				 "`enabled`",
		    error);
	else
		return true;
	return false;
}

/*
 * Checks the command's directory. With a policy the directory belongs to the
 * preparation of the sandbox, and is the policy's if it names none.
 */
static bool
check_cwd(struct request *r, const struct process_start_params *p)
{
	const struct slice *uri = &p->cwd.uri;

	if (!p->cwd.foreign)
		return true;
	if (!p->has_sandbox)
		reply_error(r->channel, &r->id, RPC_INVALID_PARAMS,
		    "cwd URI `%.*s` is not valid on this exec-server host: "
		    "'%.*s' is invalid on 'linux'%s",
		    (int)uri->len, uri->ptr, (int)uri->len, uri->ptr,
		    path_uri_hint(&p->cwd));
	else if (p->sandbox.has_cwd)
		reply_error_kind(r->channel, &r->id, RPC_INVALID_PARAMS,
		    KIND_PREPARATION,
		    "failed to prepare process sandbox: command cwd URI "
		    "`%.*s` is not valid on this host: '%.*s' is invalid on "
		    "'linux'%s",
		    (int)uri->len, uri->ptr, (int)uri->len, uri->ptr,
		    path_uri_hint(&p->cwd));
	else
		reply_error_kind(r->channel, &r->id, RPC_INVALID_PARAMS,
		    KIND_PREPARATION,
		    "failed to prepare process sandbox: invalid sandbox policy "
		    "cwd: '%.*s' is invalid on 'linux'%s",
		    (int)uri->len, uri->ptr, path_uri_hint(&p->cwd));
	return false;
}

/* As the peer answers (doc/protocol.md section 13.7). */
static bool
check_transparent(struct request *r, const struct process_start_params *p)
{
	const struct network_params *n = &p->network;

	if (!n->given || !n->enabled || !n->transparent || !n->socks ||
	    p->has_sandbox)
		return true;
	reply_error(r->channel, &r->id, RPC_INVALID_PARAMS,
	    "transparent TCP requires a managed Linux sandbox");
	return false;
}

/* Checks what the policy asks for beyond its form. */
static bool
check_policy(struct request *r, const struct process_start_params *p)
{
	const char *kind = KIND_UNAVAILABLE;
	char error[ARGS_ERROR_MAX];

	if (p->has_sandbox && sandbox_context_check_cwd(&p->sandbox, error) < 0)
		kind = KIND_PREPARATION;
	else if (check_network(p, error))
		return true;
	reply_error_kind(
	    r->channel, &r->id, RPC_INVALID_PARAMS, kind, "%s", error);
	return false;
}

/*
 * Checks what decoding and state leave open, in the order of section 7.1.
 * Answers and returns false if a check fails.
 */
static bool
check_start(struct request *r, const struct process_start_params *p)
{
	struct session *s = r->session;

	if (p->has_sandbox && p->sandbox.mxc)
		reply_error_kind(r->channel, &r->id, RPC_INVALID_PARAMS,
		    KIND_UNAVAILABLE,
		    "native MXC is unavailable on this executor");
	else if (p->argv->count == 0)
		reply_error(r->channel, &r->id, RPC_INVALID_PARAMS,
		    "argv must not be empty");
	else if (!check_transparent(r, p) || !check_policy(r, p) ||
		 !check_cwd(r, p) || !snapshot_check(r, p))
		return false;
	else if (session_find(s, p->process_id) != NULL)
		reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "process %.*s already exists", (int)p->process_id.len,
		    p->process_id.ptr);
	else if (p->has_retention &&
		 !check_retention(&p->retention, s->config.retention_bytes))
		reply_error(r->channel, &r->id, RPC_INVALID_PARAMS,
		    "retention must not exceed %" PRIu64 " bytes in all",
		    s->config.retention_bytes);
	else if (p->argv->first->text.len == 0)
		reply_error_kind(r->channel, &r->id, RPC_INTERNAL, KIND_FAILED,
		    "missing program for %s spawn", p->tty ? "PTY" : "pipe");
	else
		return true;
	return false;
}

static const char *
kind_of(int err)
{
	if (err == -ENOENT)
		return KIND_NOT_FOUND;
	return err == -EACCES || err == -EPERM ? KIND_PERMISSION_DENIED
					       : KIND_FAILED;
}

/*
 * A start between its request and its answer: what was read, decided and made
 * until now. Meanwhile its process is STARTING.
 */
struct start {
	struct session_process *process; /* owned, until it runs */
	char **argv, **envp;		 /* owned */
	struct network_list list;
	char **slow; /* owned: paths for which its child may wait; or NULL */
	int64_t began_us;
	bool captured; /* it has waited for the state of a login shell */
	bool executes; /* .process is STARTING, or was: .fault */
	struct spawn_fault fault;
};

/* What is started. */
struct launch {
	const struct process_start_params *params;
	char **argv;	/* as the client wrote it */
	char **started; /* what is carried out */
	char **envp;
	const struct shell_state *state; /* NULL: no login shell's */
	struct snapshot *capture; /* it takes a state; NULL: it is a command */
	bool may_wait;		  /* as in spawn.h */
};

/* A capture is not answered: its command is started without it, or refused. */
static void
refuse_start(
    struct request *r, const struct launch *l, const struct spawn_fault *f)
{
	const char *step = f->step;
	int err = f->err;
	char error[ARGS_ERROR_MAX];

	if (l->capture != NULL)
		return;
	if (f->enforcing) {
		sandbox_log_error(err, step);
		sandboxes_refuse(step, error);
		reply_error_kind(r->channel, &r->id, RPC_INVALID_PARAMS,
		    KIND_UNAVAILABLE, "%s", error);
	} else {
		const char *more = "";

		if (err == -PROGRAM_CARRIAGE_RETURN) {
			err = -ENOENT;
			more = ": the script's first line ends with CR LF, and "
			       "CR counts as a part of its interpreter's name";
		}
		log_debug(
		    "process start: %s: %s%s", step, strerror(-err), more);
		reply_error_kind(r->channel, &r->id, RPC_INTERNAL, kind_of(err),
		    "%s (os error %d)%s", strerror(-err), -err, more);
	}
}

/*
 * A policy that the session cannot enforce names no sandbox that there is; any
 * other refusal is about the policy itself.
 */
static void
refuse_policy(struct request *r, const char *error)
{
	bool unenforceable = strncmp(error, SANDBOX_UNENFORCEABLE,
				 strlen(SANDBOX_UNENFORCEABLE)) == 0;

	reply_error_kind(r->channel, &r->id, RPC_INVALID_PARAMS,
	    unenforceable ? KIND_UNAVAILABLE : KIND_PREPARATION, "%s", error);
}

/*
 * Returns where a command starts whose working directory its policy hides: in
 * the first workspace root, if that is in sight. NULL: nowhere else. The host
 * is not asked about a path that is denied, since the answer would tell whether
 * it exists.
 */
static const char *
cwd_instead(const struct sandbox *sandbox, const struct process_start_params *p)
{
	_cleanup_free_ char *inside = xasprintf("%s/.", p->cwd.path);
	const struct plan *plan;

	if (sandbox == NULL || !p->has_sandbox || p->sandbox.nroots == 0)
		return NULL;
	plan = &sandbox->plan;
	if (plan_access(plan, p->cwd.path) != SANDBOX_DENY ||
	    (plan_leaves_out(plan, p->cwd.path) && access(inside, X_OK) < 0) ||
	    plan_access(plan, p->sandbox.roots[0].path) == SANDBOX_DENY)
		return NULL;
	return p->sandbox.roots[0].path;
}

/*
 * How often a start is tried if somebody replaced a view under its sandbox,
 * which is then built anew.
 */
#define START_TRIES 3

static struct session_process *
begun(struct request *r, const struct launch *l)
{
	struct session_process *sp = r->start->process;

	r->start->process = NULL;
	session_add(r->session, sp);
	apply_options(sp, l->params, l->argv);
	return sp;
}

/*
 * Starts the command in the session, or answers why not, or waits for it.
 * Returns NULL without an answer if the sandbox was stale and `again` permits
 * another try.
 */
static struct session_process *
start(struct request *r, const struct launch *l, char **envp,
    struct sandbox *sandbox, uint32_t resolver, bool again)
{
	const struct process_start_params *p = l->params;
	struct session *s = r->session;
	bool told = l->capture == NULL;
	_cleanup_free_ char *program =
	    xstrndup(p->argv->first->text.ptr, p->argv->first->text.len);
	_cleanup_free_ char **candidates =
	    spawn_candidates(program, environment_get(envp, "PATH"));
	struct spawn_request request = {
		.sandbox = sandbox,
		.resolver = resolver,
		.candidates = (const char *const *)candidates,
		.argv = l->started,
		.envp = envp,
		.given = l->state != NULL ? l->state->fd : 0,
		.cwd = p->cwd.path,
		.instead = cwd_instead(sandbox, p),
		.tty = told && p->tty,
		.rows = p->rows,
		.cols = p->cols,
		.modes = p->terminal_modes,
		.pipe_stdin = told && p->pipe_stdin,
		.parent_death_signal = !s->config.pid_namespace,
		.cpu_s = s->config.command_cpu_s,
		.null_fd = s->null_fd,
		.may_wait = l->may_wait,
	};
	struct session_process *sp =
	    told ? r->start->process : session_process_new(s, p->process_id);
	struct spawn_fault fault;

	if (request.tty && s->config.record_tty &&
	    !recorder_begin(r, sp, p, l->argv, envp))
		return NULL;
	if (process_start(&sp->process, s->base, &s->groups, &request,
		told ? s->config.retention_bytes : 0,
		told ? &session_observer : &snapshot_observer, sp,
		&fault) < 0) {
		if (fault.enforcing && again && sandbox_is_stale(sandbox))
			log_debug(
			    "sandbox: a view is discarded: %s", fault.step);
		else
			refuse_start(r, l, &fault);
		recorder_end(sp);
		if (!told)
			free(sp);
		return NULL;
	}
	if (!told) {
		session_add(s, sp);
		snapshot_begun(l->capture, sp, envp);
	} else if (sp->process.starting) {
		r->start->executes = true;
		r->waits = WAITS_FOR_EXEC;
		return NULL;
	}
	return told ? begun(r, l) : sp;
}

static int
reply_started(struct request *r, const struct session_process *sp)
{
	struct json_writer w = reply_begin(r->channel, &r->id);

	json_key_string(&w, "processId", sp->id, sp->id_len);
	json_key_cstring(
	    &w, "sandboxType", sp->process.sandboxed ? "linuxSeccomp" : "none");
	if (sp->sandbox.asked || sp->sandbox.enforced)
		sandbox_report_write(&w, &sp->sandbox);
	reply_end(r->channel, &w);
	return 0;
}

/*
 * A start that was carried out before is never carried out again. It gets the
 * same answer, or an error if its process is no longer known.
 */
static bool
is_repeated(struct request *r, const struct process_start_params *p)
{
	struct session *s = r->session;
	struct session_process *sp;

	if (p->start_id.len == 0 || !recent_ids_has(&s->start_ids, p->start_id))
		return false;
	sp = session_find(s, p->process_id);
	if (sp != NULL && sp->start_id != NULL &&
	    slice_equal(
		p->start_id, (struct slice){ sp->start_id, sp->start_id_len }))
		reply_started(r, sp);
	else
		reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "start %.*s was carried out before; process %.*s is not "
		    "known as its own",
		    (int)p->start_id.len, p->start_id.ptr,
		    (int)p->process_id.len, p->process_id.ptr);
	return true;
}

/*
 * Limits the policy to what the operator permits of the session's environment.
 */
static struct env_policy
permitted_policy(const struct session *s, const struct env_policy *asked)
{
	uint8_t most = s->sandbox.ceiling.limits.environment;
	struct env_policy p = *asked;

	if (most == SANDBOX_ENVIRONMENT_NONE)
		p.inherit = ENV_INHERIT_NONE;
	else if (most == SANDBOX_ENVIRONMENT_CORE &&
		 p.inherit == ENV_INHERIT_ALL)
		p.inherit = ENV_INHERIT_CORE;
	return p;
}

/* exports: of a login shell; NULL: none. Returns NULL if there is a NUL byte.
 */
static char **
build_environment(struct session *s, const struct process_start_params *p,
    char *const *exports)
{
	struct env_policy policy = permitted_policy(s, &p->env_policy);
	char **envp = environment_build(
	    s->env, p->has_env_policy ? &policy : NULL, exports, p->env);
	_cleanup_free_ char **before = NULL;

	if (envp == NULL || !p->has_term)
		return envp;
	before = envp;
	return environment_with(before, "TERM", p->term);
}

static struct sandbox_request
wants(const struct process_start_params *p, char **envp)
{
	return (struct sandbox_request){
		.asked = p->has_sandbox ? &p->sandbox : NULL,
		.cwd = p->cwd.path,
		.tmpdir = envp != NULL ? environment_get(envp, "TMPDIR") : NULL,
	};
}

/*
 * Tells whether sandboxes_find() has nothing to do for a request: it asks for
 * no sandbox and the operator demands none, the log mentions every limit that
 * no control group counts, and no sandbox has placeholders.
 */
static bool
needs_no_sandbox(
    const struct sandboxes *sb, const struct sandbox_request *wanted)
{
	return wanted->asked == NULL && wanted->hosts == NULL && sb->plain &&
	       sb->told && TAILQ_EMPTY(&sb->pool.sandboxes);
}

/* The paths of a start that may make the runner wait. NULL: none. */
static char **
find_slow(struct session *s, const struct process_start_params *p, char **envp,
    const struct sandbox_request *wanted)
{
	const struct slow_mounts *m = slow_paths_now();
	_cleanup_free_ char *program = NULL;
	_cleanup_free_ char **candidates = NULL;
	char **paths;

	if (m == NULL)
		return NULL;
	program = xstrndup(p->argv->first->text.ptr, p->argv->first->text.len);
	candidates = spawn_candidates(program, environment_get(envp, "PATH"));
	paths = slow_paths_of_start(
	    m, p->cwd.path, (const char *const *)candidates);
	if (!needs_no_sandbox(&s->sandbox, wanted))
		slow_start_add_policy(&paths, m, &s->sandbox.ceiling, wanted);
	return paths;
}

/*
 * Starts the command with the way out that its list of hosts opens. Like
 * start(); without an answer also if the sandbox has ended meanwhile.
 */
static struct session_process *
start_with_list(struct request *r, const struct launch *l,
    const struct network_list *list, struct sandbox *sandbox, bool again)
{
	struct proxy_environment proxy = { .socks = list->socks,
		.not_through = network_list_not_through(list) };
	_cleanup_free_ char **variables = NULL;
	struct session_process *sp;
	struct network *network;
	const char *why;
	int err = netproxy_prepare(
	    r->session, sandbox, list, &network, &proxy.port, &why);

	if (err < 0) {
		if (!again || !sandbox_is_stale(sandbox))
			refuse_start(
			    r, l, &(struct spawn_fault){ err, true, why });
		return NULL;
	}
	variables = proxy_environment(l->envp, &proxy);
	sp = start(r, l, variables, sandbox, network->resolver_address, again);
	if (sp != NULL)
		netproxy_open(sp, network);
	else
		network_free(network);
	return sp;
}

/* Answers and returns NULL as start() does, or for patterns. */
static struct session_process *
start_in_sandbox(struct request *r, const struct launch *l,
    const struct sandbox_request *wanted)
{
	struct session *s = r->session;
	const struct network_list *hosts =
	    wanted->hosts != NULL ? wanted->hosts : &s->sandbox.everything;
	struct session_process *sp = NULL;
	struct sandbox *sandbox = NULL;
	char error[ARGS_ERROR_MAX];

	for (int tries = 1; tries <= START_TRIES; tries++) {
		int err = sandboxes_find(&s->sandbox, wanted, &sandbox, error);

		if (err == -EINPROGRESS) {
			r->waits = WAITS_FOR_BUILD;
			return NULL;
		}
		if (err < 0) {
			if (l->capture == NULL)
				refuse_policy(r, error);
			return NULL;
		}
		sp =
		    sandbox != NULL && sandbox->plan.hosts != NULL
			? start_with_list(
			      r, l, hosts, sandbox, tries < START_TRIES)
			: start(r, l, l->envp, sandbox, 0, tries < START_TRIES);
		if (sp != NULL || sandbox == NULL || !sandbox_is_stale(sandbox))
			break;
	}
	if (sp == NULL)
		return NULL;
	sandbox_report_fill(&sp->sandbox, &s->sandbox, wanted->asked, sandbox);
	if (sp->process.elsewhere)
		sp->sandbox.cwd = xstrdup(wanted->asked->roots[0].path);
	sp->sandbox.names = sp->network != NULL && sp->network->resolver >= 0;
	return sp;
}

/* Answers and returns false if a pattern cannot be read. */
static bool
read_list(struct request *r, const struct process_start_params *p,
    struct network_list *list)
{
	char error[ARGS_ERROR_MAX];

	if (!p->network.given ||
	    network_list_read(list, &p->network, error) == 0)
		return true;
	reply_error(r->channel, &r->id, RPC_INVALID_PARAMS, "%s", error);
	return false;
}

static struct session_process *
launch(struct request *r, const struct launch *l,
    const struct sandbox_request *wanted)
{
	const struct sandboxes *sb = &r->session->sandbox;

	return sb->tell == NULL && needs_no_sandbox(sb, wanted)
		   ? start(r, l, l->envp, NULL, 0, false)
		   : start_in_sandbox(r, l, wanted);
}

/*
 * Starts the capture of a login shell's state in place of the command. Returns
 * false if it cannot be started.
 */
static bool
begin_capture(struct request *r, const struct launch *l, struct snapshot *n,
    const struct sandbox_request *wanted)
{
	_cleanup_free_ char *text = snapshot_script(n);
	char *argv[] = { l->argv[0], l->argv[1], text, NULL };
	struct launch capture = *l;

	capture.started = argv;
	capture.capture = n;
	if (launch(r, &capture, wanted) != NULL ||
	    r->waits != WAITS_FOR_NOTHING)
		return true;
	snapshot_failed(n);
	return false;
}

/* What a command is started with in place of a login. */
struct restored {
	char **argv, *text, **envp; /* owned */
};

static void
restored_clear(struct restored *o)
{
	free(o->argv);
	free(o->text);
	free(o->envp);
}

/* A text that would be too long with the state keeps its login. */
static void
use_state(struct launch *l, struct session *s, const struct snapshot *n,
    struct restored *o)
{
	const struct snapshot_shell *shell = snapshot_shell(n);
	const struct shell_state *state = snapshot_state(n);

	o->text = shell_snapshot_restore(shell, slice_of(l->argv[2]));
	if (o->text == NULL)
		return;
	o->argv = argv_build(
	    l->params->argv, l->params->has_arg0 ? &l->params->arg0 : NULL);
	o->argv[1] = (char *)(uintptr_t)shell_snapshot_flags(shell);
	o->argv[2] = o->text;
	o->envp = build_environment(s, l->params, state->exports);
	l->started = o->argv;
	l->envp = o->envp;
	l->state = state;
}

/*
 * Finds the state of the login shell that a command asks for. Returns false if
 * the request waits, for it or for its patterns.
 */
static bool
find_state(struct request *r, struct launch *l,
    const struct sandbox_request *wanted, struct restored *o)
{
	struct snapshot *n = snapshot_find(r->session, l->params);

	if (n == NULL)
		return true;
	if (snapshot_state(n) != NULL)
		use_state(l, r->session, n, o);
	else if (!r->start->captured &&
		 (snapshot_is_captured(n) ||
		     (snapshot_is_due(n) && begin_capture(r, l, n, wanted))) &&
		 r->waits == WAITS_FOR_NOTHING) {
		r->waits = WAITS_FOR_STATE;
		r->capture = n;
		r->start->captured = true;
	}
	return r->waits == WAITS_FOR_NOTHING;
}

static bool
take_words(
    struct request *r, const struct process_start_params *p, struct start *st)
{
	st->argv = argv_build(p->argv, p->has_arg0 ? &p->arg0 : NULL);
	if (st->argv != NULL)
		st->envp = build_environment(r->session, p, NULL);
	if (st->envp != NULL)
		return true;
	reply_error_kind(r->channel, &r->id, RPC_INTERNAL, KIND_FAILED,
	    st->argv == NULL ? "nul byte found in provided data"
			     : "data provided contains a nul byte");
	return false;
}

/* Everything that depends on the request alone. Answers and returns NULL if it
 * is refused. */
static struct start *
begin(struct request *r, const struct process_start_params *p)
{
	struct session *s = r->session;
	struct start *st;

	if (!check_start(r, p) || (s->record != NULL && !audit_permits(r)))
		return NULL;
	st = xcalloc(1, sizeof(*st));
	st->began_us = s->record != NULL ? now_us() : 0;
	st->process = session_process_new(s, p->process_id);
	if (read_list(r, p, &st->list) && take_words(r, p, st))
		return st;
	start_free(st);
	return NULL;
}

void
start_free(struct start *st)
{
	if (st == NULL)
		return;
	if (st->executes)
		process_abandon(&st->process->process);
	if (st->process != NULL)
		recorder_end(st->process);
	free(st->process);
	free(st->argv);
	free(st->envp);
	network_list_clear(&st->list);
	slow_paths_free(st->slow);
	free(st);
}

struct slice
start_process_id(const struct start *st)
{
	return (struct slice){ st->process->id, st->process->id_len };
}

bool
start_take(
    struct start *st, const struct process *p, const struct spawn_fault *fault)
{
	if (st == NULL || !st->executes || &st->process->process != p)
		return false;
	st->fault = fault != NULL ? *fault : (struct spawn_fault){ 0 };
	return true;
}

const char *
start_path(const struct start *st)
{
	return st->slow[0];
}

/* Its program runs now, or not. */
static struct session_process *
executed(struct request *r, const struct launch *l)
{
	struct start *st = r->start;

	st->executes = false;
	if (st->fault.err == 0)
		return begun(r, l);
	process_clear(&st->process->process);
	refuse_start(r, l, &st->fault);
	return NULL;
}

#define _cleanup_restored_ __attribute__((cleanup(restored_clear)))

/* From where it waited, or from its beginning. */
static struct session_process *
go_on(struct request *r, const struct process_start_params *p)
{
	struct start *st = r->start;
	struct launch l = { .params = p,
		.argv = st->argv,
		.started = st->argv,
		.envp = st->envp };
	_cleanup_restored_ struct restored restored = { 0 };
	struct sandbox_request wanted = wants(p, st->envp);

	wanted.hosts = p->network.given ? &st->list : NULL;
	if (st->executes)
		return executed(r, &l);
	if (starting_oldest_change(r->session) <= r->change)
		r->waits = WAITS_FOR_FILES;
	else if (!r->opened && st->slow == NULL)
		st->slow = find_slow(r->session, p, st->envp, &wanted);
	l.may_wait = st->slow != NULL;
	if (l.may_wait && !needs_no_sandbox(&r->session->sandbox, &wanted)) {
		r->slow = st->slow;
		st->slow = NULL;
	}
	if (r->waits != WAITS_FOR_NOTHING || r->slow != NULL ||
	    !find_state(r, &l, &wanted, &restored))
		return NULL;
	return launch(r, &l, &wanted);
}

struct session_process *
method_process_begin(struct request *r, const struct process_start_params *p)
{
	struct session_process *sp;

	if (r->start == NULL)
		r->start = begin(r, p);
	if (r->start == NULL)
		return NULL;
	sp = go_on(r, p);
	if (sp != NULL && r->session->record != NULL)
		audit_started(
		    sp, r->start->argv, p->cwd.path, r->start->began_us);
	if (r->waits == WAITS_FOR_NOTHING && r->slow == NULL) {
		start_free(r->start);
		r->start = NULL;
	}
	return sp;
}

int
method_process_start(struct request *r, const union method_params *params)
{
	const struct process_start_params *p = &params->process_start;
	struct session_process *sp;

	if (r->start == NULL && is_repeated(r, p))
		return 0;
	sp = method_process_begin(r, p);
	return sp ? reply_started(r, sp) : 0;
}

/* --- process/read ------------------------------------------------------- */

int
method_process_read(struct request *r, const union method_params *params)
{
	const struct process_read_params *p = &params->process_read;
	struct process_query query = { p->after_seq, p->max_bytes };
	struct session_process *sp = method_find_process(r, p->process_id);

	if (sp == NULL)
		return 0;
	if (!r->client->watching) {
		process_state_taken(&sp->process.state, p->after_seq);
		process_resume(&sp->process);
	}
	if (p->wait_ms == 0 || r->client->input_ended ||
	    process_state_has_news(&sp->process.state, p->after_seq)) {
		waiter_reply(r->channel, sp, &r->id, &query);
		return 0;
	}
	return waiter_add(r, sp, &query, p->wait_ms);
}

/* --- process/write ------------------------------------------------------ */

static int
reply_status(struct channel *ch, const struct rpc_id *id, const char *status)
{
	struct json_writer w = reply_begin(ch, id);

	json_key_cstring(&w, "status", status);
	reply_end(ch, &w);
	return 0;
}

/* A write that waits for room in the queue. If its connection ends first,
 * nobody is told. */
struct pending_write {
	struct session *session;
	uint32_t generation;
	struct rpc_id id;
	written_fn *reply;
	size_t process_len;
	char process[]; /* its id */
};

static int
reply_written(struct channel *ch, const struct rpc_id *id,
    const struct pending_write *w, enum input_status status)
{
	switch (status) {
	case INPUT_TERMINATED:
		return reply_error(
		    ch, id, RPC_INTERNAL, "failed to write to process stdin");
	case INPUT_FULL:
		return reply_error(ch, id, RPC_MALFORMED,
		    "too much unread "
		    "standard input: limit is %d writes and %u bytes",
		    INPUT_WAITING_MAX, INPUT_WAITING_BYTES);
	default:
		return w->reply(ch, id,
		    (struct slice){ w->process, w->process_len },
		    status == INPUT_ACCEPTED);
	}
}

static void
pending_write_answer(void *arg, enum input_status status)
{
	struct pending_write *w = arg;
	struct session *s = w->session;

	if (channel_is_open(&s->client.channel) &&
	    s->generation == w->generation) {
		s->client.waiting--;
		reply_written(&s->client.channel, &w->id, w, status);
	}
	rpc_id_clear(&w->id);
	free(w);
}

int
method_write(struct request *r, struct session_process *sp,
    struct slice write_id, struct slice chunk, written_fn *reply)
{
	struct session *s = r->session;
	struct input *input = &sp->process.input;
	bool known = write_id.len > 0 && recent_ids_has(&input->ids, write_id);
	struct pending_write *w = xcalloc(1, sizeof(*w) + sp->id_len);
	enum input_status status;

	w->session = s;
	w->generation = s->generation;
	w->reply = reply;
	w->process_len = sp->id_len;
	memcpy(w->process, sp->id, sp->id_len);
	status = input_write(input, write_id, chunk, pending_write_answer, w);
	if (!known && (status == INPUT_ACCEPTED || status == INPUT_WAITING))
		recorder_input(sp, chunk.ptr, chunk.len);
	if (status == INPUT_WAITING) {
		w->id = r->id;
		r->id = (struct rpc_id){ 0 };
		s->client.waiting++;
		return RPC_PENDING;
	}
	reply_written(r->channel, &r->id, w, status);
	free(w);
	return 0;
}

static int
reply_process_written(struct channel *ch, const struct rpc_id *id,
    struct slice process, bool accepted)
{
	return reply_status(ch, id, accepted ? "accepted" : "stdinClosed");
}

int
method_process_write(struct request *r, const union method_params *params)
{
	const struct process_write_params *p = &params->process_write;
	struct session_process *sp = session_find(r->session, p->process_id);

	return sp == NULL ? reply_status(r->channel, &r->id, "unknownProcess")
			  : method_write(r, sp, p->write_id, p->chunk,
				reply_process_written);
}
