/*
 * Params of the process/ methods that are execd's own (PROTOCOL.md section
 * 17): what is done to a process that runs, and what is asked about it.
 */
#include "params.h"

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
