/* SPDX-License-Identifier: ISC */
/*
 * Params of the process/ methods that control a running process or ask about it
 * (doc/protocol.md sections 7.6 and 17).
 */
#include "params.h"

/*
 * Without a target only the peer's single signal is accepted, and errors are in
 * the peer's words. With a target every signal is accepted by its name.
 */
int
params_process_signal(
    struct rpc_message *m, union method_params *p, char *error)
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
	struct args a;

	*s = (struct process_signal_params){ .signal = CLIENT_SIGNAL_INT,
		.target = SIGNAL_TARGET_GROUP };
	args_init(&a, &m->doc, m->params, "SignalParams");
	s->process_id = args_string(&a, "processId");
	s->has_target = args_opt_string(&a, "target", &ignored);
	if (s->has_target)
		s->signal = (enum client_signal)args_enum(&a, "signal", names);
	else
		args_enum(&a, "signal", peers);
	if (s->has_target)
		s->target =
		    (enum signal_target)args_enum(&a, "target", targets);
	return params_end(&a, error);
}

int
params_process_terminate(
    struct rpc_message *m, union method_params *p, char *error)
{
	static const char *const modes[] = { "force", "graceful", NULL };
	struct process_terminate_params *t = &p->process_terminate;
	struct args a;

	args_init(&a, &m->doc, m->params, "TerminateParams");
	t->process_id = args_string(&a, "processId");
	t->graceful = args_opt_enum(&a, "mode", modes, 0) == 1;
	t->has_timeout = args_opt_number(&a, "timeoutMs", &t->timeout_ms);
	if (args_end(&a) == 0 && t->has_timeout && !t->graceful)
		args_fail(&a, "timeoutMs needs mode `graceful`");
	return params_end(&a, error);
}

int
params_process_close_stdin(
    struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	args_init(&a, &m->doc, m->params, "CloseStdinParams");
	p->process_id.process_id = args_string(&a, "processId");
	return params_end(&a, error);
}

int
params_process_snapshot(
    struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	args_init(&a, &m->doc, m->params, "SnapshotParams");
	p->process_id.process_id = args_string(&a, "processId");
	return params_end(&a, error);
}

/* Absent `params` ask for the whole list. */
int
params_process_list(struct rpc_message *m, union method_params *p, char *error)
{
	static const struct json_value none = { .type = JSON_OBJECT };
	bool absent = m->params == NULL || m->params->type == JSON_NULL;
	struct args a;

	args_init(&a, &m->doc, absent ? &none : m->params, "ListParams");
	p->process_list.after = args_opt_u64(&a, "after", 0);
	return params_end(&a, error);
}

int
params_process_resize(
    struct rpc_message *m, union method_params *p, char *error)
{
	struct process_resize_params *r = &p->process_resize;
	struct args a;

	args_init(&a, &m->doc, m->params, "ResizeParams");
	r->process_id = args_string(&a, "processId");
	r->rows = (uint16_t)args_range(&a, "rows", 1, TTY_SIZE_MAX);
	r->cols = (uint16_t)args_range(&a, "cols", 1, TTY_SIZE_MAX);
	return params_end(&a, error);
}

int
params_process_wait(struct rpc_message *m, union method_params *p, char *error)
{
	struct process_wait_params *w = &p->process_wait;
	struct args a;

	args_init(&a, &m->doc, m->params, "WaitParams");
	w->process_id = args_string(&a, "processId");
	w->timeout_ms = args_opt_u64(&a, "timeoutMs", UINT64_MAX);
	return params_end(&a, error);
}

int
params_process_forward(
    struct rpc_message *m, union method_params *p, char *error)
{
	static const char *const hosts[] = {
		[FORWARD_IPV4] = "127.0.0.1", [FORWARD_IPV6] = "::1", NULL
	};
	struct process_forward_params *f = &p->process_forward;
	struct args a;

	args_init(&a, &m->doc, m->params, "ForwardParams");
	f->process_id = args_string(&a, "processId");
	f->port = (uint16_t)args_range(&a, "port", 1, UINT16_MAX);
	f->has_of = args_opt_string(&a, "of", &f->of);
	f->host =
	    (enum forward_host)args_opt_enum(&a, "host", hosts, FORWARD_EITHER);
	return params_end(&a, error);
}
