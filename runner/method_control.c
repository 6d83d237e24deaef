/*
 * The process/ methods that are execd's own (PROTOCOL.md section 17): what is
 * done to a process that runs, and waiting for its end.
 */
#include <errno.h>

#include "methods.h"
#include "report.h"
#include "waiter.h"

int
method_process_close_stdin(struct request *r, const union method_params *params)
{
	struct session_process *sp =
	    method_find_process(r, params->process_id.process_id);

	if (sp == NULL)
		return 0;
	if (process_end_input(&sp->process) < 0)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "too much unread standard input: limit is %d writes and "
		    "%u bytes",
		    INPUT_WAITING_MAX, INPUT_WAITING_BYTES);
	return reply_empty(r);
}

int
method_process_resize(struct request *r, const union method_params *params)
{
	const struct process_resize_params *p = &params->process_resize;
	struct session_process *sp = method_find_process(r, p->process_id);
	int err;

	if (sp == NULL)
		return 0;
	err = process_resize(&sp->process, p->rows, p->cols);
	if (err == -ENOTTY)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "process %.*s has no terminal", (int)p->process_id.len,
		    p->process_id.ptr);
	return err < 0 ? reply_os_error(r->channel, &r->id, err)
		       : reply_empty(r);
}

/* Waits for closed, not for exited: then its output is complete, too. */
int
method_process_wait(struct request *r, const union method_params *params)
{
	const struct process_wait_params *p = &params->process_wait;
	struct session_process *sp = method_find_process(r, p->process_id);

	if (sp == NULL)
		return 0;
	if (!sp->process.state.closed && p->timeout_ms > 0 &&
	    !r->session->input_ended)
		return waiter_add(r, sp, NULL, p->timeout_ms);
	report_reply(sp, &r->id);
	return 0;
}
