/* SPDX-License-Identifier: ISC */
/*
 * Params of the process/ methods (doc/protocol.md sections 7 and 8).
 */
#include <string.h>

#include "params.h"

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

/* A process without a terminal has no terminal size and no terminal name.
 * Params that set them are an error. */
static void
decode_terminal(struct args *a, struct process_start_params *s)
{
	uint64_t rows = args_opt_range(a, "rows", 1, TTY_SIZE_MAX, 0);
	uint64_t cols = args_opt_range(a, "cols", 1, TTY_SIZE_MAX, 0);

	s->has_term = args_opt_string(a, "term", &s->term);
	if (!s->tty && args_end(a) == 0 && (rows || cols || s->has_term))
		args_fail(a, "rows, cols and term need tty");
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
	if (args_end(&in) < 0)
		args_fail(a, "%s", in.error);
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
}

static void
decode_start_options(struct args *a, struct process_start_params *s)
{
	const struct json_value *v;

	v = args_opt_object(a, "envPolicy", "ExecEnvPolicy");
	s->has_env_policy = v != NULL;
	if (v != NULL)
		decode_env_policy(a, v, &s->env_policy);
	s->pipe_stdin = args_default_bool(a, "pipeStdin", false);
	s->has_arg0 = args_opt_string(a, "arg0", &s->arg0);
	v = args_opt_object(a, "sandbox", "WireFileSystemSandboxContext");
	s->has_sandbox = v != NULL;
	if (v != NULL)
		sandbox_context_decode(a, v, &s->sandbox);
	s->enforce_managed_network =
	    args_default_bool(a, "enforceManagedNetwork", false);
	s->has_managed_network =
	    args_opt_object(a, "managedNetwork", "ManagedNetwork") != NULL;
	s->has_network_proxy =
	    args_opt_object(a, "networkProxy", "NetworkProxyLaunch") != NULL;
	s->has_shell_snapshot =
	    args_opt_object(a, "shellSnapshot", "ShellSnapshot") != NULL;
}

int
params_process_start(struct rpc_message *m, union method_params *p, char *error)
{
	struct process_start_params *s = &p->process_start;
	struct args a;

	memset(s, 0, sizeof(*s));
	args_init(&a, &m->doc, m->params, "WireExecParams");
	s->process_id = args_string(&a, "processId");
	s->argv = args_strings(&a, "argv");
	s->cwd = args_path(&a, "cwd");
	s->env = args_string_map(&a, "env");
	s->tty = args_bool(&a, "tty");
	decode_start_options(&a, s);
	decode_own_options(&a, s);
	return params_end(&a, error);
}

int
params_process_read(struct rpc_message *m, union method_params *p, char *error)
{
	struct process_read_params *r = &p->process_read;
	struct args a;

	args_init(&a, &m->doc, m->params, "ReadParams");
	r->process_id = args_string(&a, "processId");
	r->after_seq = args_opt_u64(&a, "afterSeq", 0);
	r->max_bytes = args_opt_u64(&a, "maxBytes", UINT64_MAX);
	r->wait_ms = args_opt_u64(&a, "waitMs", 0);
	return params_end(&a, error);
}

int
params_process_write(struct rpc_message *m, union method_params *p, char *error)
{
	struct process_write_params *w = &p->process_write;
	struct args a;

	args_init(&a, &m->doc, m->params, "WriteParams");
	w->process_id = args_string(&a, "processId");
	w->chunk = args_base64(&a, "chunk");
	w->write_id = args_string(&a, "writeId");
	if (args_end(&a) == 0 && w->write_id.len == 0)
		args_fail(&a, "writeId must not be empty");
	return params_end(&a, error);
}
