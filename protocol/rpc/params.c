/* SPDX-License-Identifier: ISC */
/*
 * Params of all methods but those of files (doc/protocol.md).
 */
#include "params.h"

int
params_decode(params_fn *params, struct rpc_message *m, union method_params *p,
    char *error)
{
	struct args a;

	memset(p, 0, sizeof(*p));
	args_take(&a, &m->doc, m->params);
	params(&a, p);
	if (args_end(&a) < 0)
		snprintf(error, ARGS_ERROR_MAX, "%s", a.error);
	return args_end(&a);
}

static void
decode_env_policy(
    struct args *a, const struct json_value *v, struct env_policy *policy)
{
	static const char *const inherit[] = { "core", "all", "none", NULL };
	struct args in;

	args_init(&in, a->doc, v, "EnvPolicy");
	policy->inherit = (enum env_inherit)args_enum(&in, "inherit", inherit);
	policy->ignore_default_excludes =
	    args_bool(&in, "ignoreDefaultExcludes");
	policy->exclude = args_strings(&in, "exclude");
	policy->set = args_string_map(&in, "set");
	policy->include_only = args_strings(&in, "includeOnly");
	if (args_end(&in) < 0)
		args_fail(a, "%s", in.error);
}

/*
 * Checks the encoding of RFC 4254 section 8: each mode is a number and 4 bytes.
 * The list ends with 0, or with a number above 159, whose argument has no known
 * length.
 */
static void
check_modes(struct args *a, struct slice modes)
{
	const uint8_t *p = (const uint8_t *)modes.ptr;
	size_t len = modes.len;

	if (len > TTY_MODES_MAX_BYTES)
		args_fail(a, "terminalModes must have at most %d bytes",
		    TTY_MODES_MAX_BYTES);
	for (; len > 0 && *p != 0 && *p < 160; p += 5, len -= 5) {
		if (len >= 5)
			continue;
		args_fail(a, "terminalModes are cut off");
		return;
	}
}

/* A process without a terminal has no terminal size and no terminal name.
 * Params that set them are an error. */
static void
decode_terminal(struct args *a, struct process_start_params *s)
{
	uint64_t rows = args_opt_range(a, "rows", 1, TTY_SIZE_MAX, 0);
	uint64_t cols = args_opt_range(a, "cols", 1, TTY_SIZE_MAX, 0);

	bool has_modes =
	    args_opt_base64(a, "terminalModes", &s->terminal_modes);

	s->has_term = args_opt_string(a, "term", &s->term);
	if (!s->tty && args_end(a) == 0 &&
	    (rows || cols || s->has_term || has_modes))
		args_fail(a, "rows, cols, term and terminalModes need tty");
	if (has_modes && args_end(a) == 0)
		check_modes(a, s->terminal_modes);
	s->rows = (uint16_t)(rows ? rows : TTY_ROWS);
	s->cols = (uint16_t)(cols ? cols : TTY_COLS);
}

static void
decode_retention(
    struct args *a, const struct json_value *v, struct retention_params *r)
{
	struct args in;

	args_init(&in, a->doc, v, "Retention");
	r->head_bytes = args_opt_u64(&in, "headBytes", 0);
	r->has_tail = args_opt_number(&in, "tailBytes", &r->tail_bytes);
	r->wait = args_opt_bool(&in, "wait", false);
	r->hold = args_opt_bool(&in, "hold", false);
	if (args_end(&in) < 0)
		args_fail(a, "%s", in.error);
	else if (r->hold && (r->wait || r->head_bytes > 0 || r->has_tail))
		args_fail(a, "hold excludes wait, headBytes and tailBytes");
	else if (r->wait && (r->head_bytes > 0 || r->has_tail))
		args_fail(a, "wait excludes headBytes and tailBytes");
}

/* Members that only execd has. */
static void
decode_own_options(struct args *a, struct process_start_params *s)
{
	const struct json_value *v =
	    args_opt_object(a, "retention", "Retention");

	if (args_opt_string(a, "startId", &s->start_id) &&
	    (s->start_id.len == 0 || s->start_id.len > START_ID_MAX_BYTES))
		args_fail(
		    a, "startId must have 1 to %d bytes", START_ID_MAX_BYTES);
	s->has_retention = v != NULL;
	if (v != NULL)
		decode_retention(a, v, &s->retention);
	s->has_timeout = args_opt_number(a, "timeoutMs", &s->timeout_ms);
	decode_terminal(a, s);
	v = args_opt_object(a, "network", "Network");
	if (v != NULL && s->network.given)
		args_fail(a, "network and networkProxy exclude each other");
	else if (v != NULL)
		network_params_decode_own(a, v, &s->network);
}

static void
decode_snapshot(
    struct args *a, const struct json_value *v, struct shell_snapshot_params *s)
{
	const struct json_value *shell;
	struct args in;

	args_init(&in, a->doc, v, "ShellSnapshotRequest");
	s->given = true;
	s->scope = args_string(&in, "scopeId");
	shell = args_object(&in, "shell", "ShellInfo");
	if (args_end(&in) == 0) {
		args_init(&in, a->doc, shell, "ShellInfo");
		s->shell = args_string(&in, "name");
		s->path = args_string(&in, "path");
	}
	if (args_end(&in) < 0)
		args_fail(a, "%s", in.error);
}

static void
decode_start_options(struct args *a, struct process_start_params *s)
{
	const struct json_value *v;

	v = args_opt_object(a, "envPolicy", "ExecEnvPolicy");
	s->has_env_policy = v != NULL;
	if (v != NULL)
		decode_env_policy(a, v, &s->env_policy);
	s->snapshot.env_policy = v;
	s->pipe_stdin = args_default_bool(a, "pipeStdin", false);
	s->has_arg0 = args_opt_string(a, "arg0", &s->arg0);
	v = args_opt_object(a, "sandbox", "WireFileSystemSandboxContext");
	s->has_sandbox = v != NULL;
	if (v != NULL)
		sandbox_context_decode(a, v, &s->sandbox);
	s->snapshot.sandbox = v;
	s->enforce_managed_network =
	    args_default_bool(a, "enforceManagedNetwork", false);
	s->has_managed_network =
	    args_opt_object(a, "managedNetwork", "ManagedNetwork") != NULL;
	v = args_opt_object(a, "networkProxy", "NetworkProxyLaunch");
	if (v != NULL)
		network_params_decode_proxy(a, v, &s->network);
	v = args_opt_object(a, "shellSnapshot", "ShellSnapshotRequest");
	if (v != NULL)
		decode_snapshot(a, v, &s->snapshot);
}

void
params_process_start(struct args *a, union method_params *p)
{
	struct process_start_params *s = &p->process_start;

	args_begin(a, "WireExecParams");
	s->process_id = args_string(a, "processId");
	s->argv = args_strings(a, "argv");
	s->cwd = args_path(a, "cwd");
	s->env = args_string_map(a, "env");
	s->tty = args_bool(a, "tty");
	decode_start_options(a, s);
	decode_own_options(a, s);
}

void
params_process_read(struct args *a, union method_params *p)
{
	struct process_read_params *r = &p->process_read;

	args_begin(a, "ReadParams");
	r->process_id = args_string(a, "processId");
	r->after_seq = args_opt_u64(a, "afterSeq", 0);
	r->max_bytes = args_opt_u64(a, "maxBytes", UINT64_MAX);
	r->wait_ms = args_opt_u64(a, "waitMs", 0);
}

void
params_process_write(struct args *a, union method_params *p)
{
	struct process_write_params *w = &p->process_write;

	args_begin(a, "WriteParams");
	w->process_id = args_string(a, "processId");
	w->chunk = args_base64(a, "chunk");
	w->write_id = args_string(a, "writeId");
	if (args_end(a) == 0 && w->write_id.len == 0)
		args_fail(a, "writeId must not be empty");
}

/* --- a running process -------------------------------------------------- */

/*
 * Without a target only the peer's single signal is accepted, and errors are in
 * the peer's words. With a target every signal is accepted by its name.
 */
void
params_process_signal(struct args *a, union method_params *p)
{
	static const char *const peers[] = { "interrupt", NULL };
	static const char *const names[] = {
#define SIGNAL(name) #name,
#include "signals.def"
#undef SIGNAL
		NULL
	};
	static const char *const targets[] = { "process", "group", "tree",
		NULL };
	struct process_signal_params *s = &p->process_signal;
	struct slice ignored;

	s->signal = CLIENT_SIGNAL_INT;
	s->target = SIGNAL_TARGET_GROUP;
	args_begin(a, "SignalParams");
	s->process_id = args_string(a, "processId");
	s->has_target = args_opt_string(a, "target", &ignored);
	if (s->has_target)
		s->signal = (enum client_signal)args_enum(a, "signal", names);
	else
		args_enum(a, "signal", peers);
	if (s->has_target)
		s->target = (enum signal_target)args_enum(a, "target", targets);
}

void
params_process_terminate(struct args *a, union method_params *p)
{
	static const char *const modes[] = { "force", "graceful", NULL };
	struct process_terminate_params *t = &p->process_terminate;

	args_begin(a, "TerminateParams");
	t->process_id = args_string(a, "processId");
	t->graceful = args_opt_enum(a, "mode", modes, 0) == 1;
	t->has_timeout = args_opt_number(a, "timeoutMs", &t->timeout_ms);
	if (args_end(a) == 0 && t->has_timeout && !t->graceful)
		args_fail(a, "timeoutMs needs mode `graceful`");
}

void
params_process_close_stdin(struct args *a, union method_params *p)
{
	args_begin(a, "CloseStdinParams");
	p->process_id.process_id = args_string(a, "processId");
}

void
params_process_arrived(struct args *a, union method_params *p)
{
	struct process_arrived_params *r = &p->process_arrived;

	args_begin(a, "ArrivedParams");
	r->process_id = args_string(a, "processId");
	r->bytes = args_u64(a, "bytes");
}

void
params_process_snapshot(struct args *a, union method_params *p)
{
	args_begin(a, "SnapshotParams");
	p->process_id.process_id = args_string(a, "processId");
}

/* Absent `params` ask for the whole list. */
/* `next` of an earlier answer; without params the list is asked for from its
 * beginning. */
static uint64_t
take_after(struct args *a, const char *name)
{
	static const struct json_value none = { .type = JSON_OBJECT };

	if (a->params->type == JSON_NULL)
		a->params = &none;
	args_begin(a, name);
	return args_opt_u64(a, "after", 0);
}

void
params_process_list(struct args *a, union method_params *p)
{
	p->process_list.after = take_after(a, "ListParams");
}

void
params_process_resize(struct args *a, union method_params *p)
{
	struct process_resize_params *r = &p->process_resize;

	args_begin(a, "ResizeParams");
	r->process_id = args_string(a, "processId");
	r->rows = (uint16_t)args_range(a, "rows", 1, TTY_SIZE_MAX);
	r->cols = (uint16_t)args_range(a, "cols", 1, TTY_SIZE_MAX);
}

void
params_process_wait(struct args *a, union method_params *p)
{
	struct process_wait_params *w = &p->process_wait;

	args_begin(a, "WaitParams");
	w->process_id = args_string(a, "processId");
	w->timeout_ms = args_opt_u64(a, "timeoutMs", UINT64_MAX);
}

void
params_process_forward(struct args *a, union method_params *p)
{
	static const char *const hosts[] = {
		[FORWARD_IPV4] = "127.0.0.1", [FORWARD_IPV6] = "::1", NULL
	};
	struct process_forward_params *f = &p->process_forward;

	args_begin(a, "ForwardParams");
	f->process_id = args_string(a, "processId");
	f->port = (uint16_t)args_range(a, "port", 1, UINT16_MAX);
	f->has_of = args_opt_string(a, "of", &f->of);
	f->host =
	    (enum forward_host)args_opt_enum(a, "host", hosts, FORWARD_EITHER);
}

/* --- the session -------------------------------------------------------- */

const char *
method_family_name(enum method_family family)
{
	static const char *const names[] = {
		[FAMILY_INITIALIZE] = "initialize",
		[FAMILY_EXEC] = "exec",
		[FAMILY_FILESYSTEM] = "filesystem",
		[FAMILY_HTTP] = "http",
		[FAMILY_ENVIRONMENT_INFO] = "environment info",
		[FAMILY_ENVIRONMENT_STATUS] = "environment status",
		[FAMILY_ENVIRONMENT_CONFIG] = "environment config",
		[FAMILY_CAPABILITY_DISCOVERY] = "capability discovery",
		[FAMILY_SESSION] = "session",
	};

	return names[family];
}

static void
take_keep(struct args *a, struct session_keep_params *keep)
{
	keep->keep_ms = args_u64(a, "keepMs");
	keep->while_running = args_opt_bool(a, "whileRunning", false);
}

void
params_session_keep(struct args *a, union method_params *p)
{
	args_begin(a, "SessionKeep");
	take_keep(a, &p->session_keep);
}

void
params_session_list(struct args *a, union method_params *p)
{
	p->session_list.after = take_after(a, "SessionList");
}

static void
decode_keep(struct args *a, struct initialize_params *i)
{
	const struct json_value *v =
	    args_opt_object(a, "sessionKeep", "SessionKeep");
	struct args in;

	i->has_keep = v != NULL;
	if (v == NULL)
		return;
	args_init(&in, a->doc, v, "SessionKeep");
	take_keep(&in, &i->keep);
	if (args_end(&in) < 0)
		args_fail(a, "%s", in.error);
	if (i->watch)
		args_fail(
		    a, "watchSessionId and sessionKeep exclude each other");
}

void
params_initialize(struct args *a, union method_params *p)
{
	struct initialize_params *i = &p->initialize;

	args_begin(a, "InitializeParams");
	i->client_name = args_string(a, "clientName");
	i->resume =
	    args_opt_string(a, "resumeSessionId", &i->resume_session_id);
	i->watch = args_opt_string(a, "watchSessionId", &i->watch_session_id);
	if (i->resume && i->watch)
		args_fail(
		    a, "resumeSessionId and watchSessionId exclude each other");
	i->take_over = args_opt_bool(a, "takeOver", false);
	if (i->take_over && !i->resume)
		args_fail(a, "takeOver needs resumeSessionId");
	decode_keep(a, i);
}

void
params_environment_info(struct args *a, union method_params *p)
{
	args_none(a);
}

void
params_environment_status(struct args *a, union method_params *p)
{
	args_none(a);
}

void
params_session_end(struct args *a, union method_params *p)
{
	args_none(a);
}

/* --- http/request ------------------------------------------------------- */

static void
decode_header(struct args *a, const struct json_value *v, struct http_header *h)
{
	struct args in;

	args_init(&in, a->doc, v, "HttpHeader");
	h->name = args_string(&in, "name");
	h->value = args_string(&in, "value");
	if (!args_opt_string(&in, "valueEnvVar", &h->env_var))
		h->env_var = (struct slice){ NULL, 0 };
	if (args_end(&in) < 0)
		args_fail(a, "%s", in.error);
}

static void
decode_headers(struct args *a, struct http_request_params *r)
{
	const struct json_value *list = args_default_list(a, "headers");

	if (list == NULL || list->count == 0)
		return;
	r->headers = json_alloc(a->doc, list->count * sizeof(*r->headers));
	for (const struct json_value *v = list->first; v; v = v->next) {
		r->headers[r->header_count] = (struct http_header){ 0 };
		decode_header(a, v, &r->headers[r->header_count++]);
	}
}

void
params_http_request(struct args *a, union method_params *p)
{
	static const char *const policies[] = { "follow", "stop", NULL };
	struct http_request_params *r = &p->http_request;

	args_begin(a, "HttpRequestParams");
	r->method = args_string(a, "method");
	r->url = args_string(a, "url");
	decode_headers(a, r);
	r->has_body = args_opt_base64(a, "bodyBase64", &r->body);
	r->has_timeout = args_opt_number(a, "timeoutMs", &r->timeout_ms);
	r->follow_redirects =
	    args_default_enum(a, "redirectPolicy", policies, 0) == 0;
	r->request_id = args_string(a, "requestId");
	r->stream = args_default_bool(a, "streamResponse", false);
}

/* --- exec-server.v0 ----------------------------------------------------- */

/* Paths were plain in that version. */
static struct path_uri
take_cwd(struct args *a)
{
	struct slice s = args_string(a, "cwd");
	char *path = json_alloc(a->doc, s.len + 1), error[512];
	struct path_uri mapped = { .path = "/" };

	if (path_uri_is_windows(s)) {
		if (path_uri_parse(&mapped, a->doc, s, error, sizeof(error)) <
		    0)
			args_fail(a, "%s", error);
		return mapped;
	}
	memcpy(path, s.ptr, s.len);
	path[s.len] = '\0';
	if (args_end(a) == 0 && (path[0] != '/' || strlen(path) != s.len))
		args_fail(a, "cwd must be an absolute path");
	return (struct path_uri){ .path = path, .uri = s };
}

void
params_command_exec(struct args *a, union method_params *p)
{
	struct process_start_params *s = &p->process_start;

	s->rows = TTY_ROWS;
	s->cols = TTY_COLS;
	args_begin(a, "ExecParams");
	s->argv = args_strings(a, "argv");
	s->cwd = take_cwd(a);
	s->env = args_string_map(a, "env");
	s->tty = args_bool(a, "tty");
	s->has_arg0 = args_opt_string(a, "arg0", &s->arg0);
}

void
params_command_exec_write(struct args *a, union method_params *p)
{
	struct process_write_params *w = &p->process_write;

	args_begin(a, "WriteParams");
	w->process_id = args_string(a, "sessionId");
	w->chunk = args_base64(a, "chunk");
}

void
params_command_exec_terminate(struct args *a, union method_params *p)
{
	args_begin(a, "TerminateParams");
	p->process_id.process_id = args_string(a, "sessionId");
}
