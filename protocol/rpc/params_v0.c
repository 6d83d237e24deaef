/* SPDX-License-Identifier: ISC */
/*
 * Params of the first protocol version, exec-server.v0 (doc/protocol.md section
 * 16). A command/exec is a process/start with fewer members. Its sessionId is
 * called processId elsewhere.
 */
#include <string.h>

#include "params.h"

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

int
params_command_exec(struct rpc_message *m, union method_params *p, char *error)
{
	struct process_start_params *s = &p->process_start;
	struct args a;

	*s =
	    (struct process_start_params){ .rows = TTY_ROWS, .cols = TTY_COLS };
	args_init(&a, &m->doc, m->params, "ExecParams");
	s->argv = args_strings(&a, "argv");
	s->cwd = take_cwd(&a);
	s->env = args_string_map(&a, "env");
	s->tty = args_bool(&a, "tty");
	s->has_arg0 = args_opt_string(&a, "arg0", &s->arg0);
	return params_end(&a, error);
}

int
params_command_exec_write(
    struct rpc_message *m, union method_params *p, char *error)
{
	struct process_write_params *w = &p->process_write;
	struct args a;

	*w = (struct process_write_params){ 0 };
	args_init(&a, &m->doc, m->params, "WriteParams");
	w->process_id = args_string(&a, "sessionId");
	w->chunk = args_base64(&a, "chunk");
	return params_end(&a, error);
}

int
params_command_exec_terminate(
    struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	args_init(&a, &m->doc, m->params, "TerminateParams");
	p->process_id.process_id = args_string(&a, "sessionId");
	return params_end(&a, error);
}
