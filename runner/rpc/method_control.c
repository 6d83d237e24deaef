/* SPDX-License-Identifier: ISC */
/*
 * The process/ methods that act on a running process: signals, ending it, its
 * input and its terminal; also waiting for its end (doc/protocol.md sections
 * 7.6, 17).
 */
#include <errno.h>
#include <signal.h>

#include "methods.h"
#include "recorder.h"
#include "report.h"
#include "waiter.h"

static int
signal_number(enum client_signal signal)
{
	static const int numbers[] = {
#define SIGNAL(name) SIG##name,
#include "signals.def"
#undef SIGNAL
	};

	return numbers[signal];
}

static enum process_target
target_of(enum signal_target target)
{
	static const enum process_target targets[] = {
		[SIGNAL_TARGET_PROCESS] = PROCESS_ALONE,
		[SIGNAL_TARGET_GROUP] = PROCESS_GROUP,
		[SIGNAL_TARGET_TREE] = PROCESS_TREE,
	};

	return targets[target];
}

/*
 * The peer's form of the method: the answer does not tell whether there is such
 * a process.
 */
static int
signal_silently(struct request *r, const struct process_signal_params *p)
{
	struct session_process *sp = session_find(r->session, p->process_id);

	if (sp != NULL)
		process_signal(&sp->process, signal_number(p->signal));
	return reply_empty(r);
}

int
method_process_signal(struct request *r, const union method_params *params)
{
	const struct process_signal_params *p = &params->process_signal;
	struct session_process *sp;
	struct json_writer w;
	bool delivered;

	if (!p->has_target)
		return signal_silently(r, p);
	sp = method_find_process(r, p->process_id);
	if (sp == NULL)
		return 0;
	delivered = process_signal_target(
	    &sp->process, signal_number(p->signal), target_of(p->target));
	w = reply_begin(r->channel, &r->id);
	json_key_bool(&w, "delivered", delivered);
	reply_end(r->channel, &w);
	return 0;
}

static bool
terminate(struct session *s, struct process *process,
    const struct process_terminate_params *p)
{
	if (!p->graceful)
		return process_terminate(process);
	return process_end_gracefully(process, s->base,
	    p->has_timeout ? p->timeout_ms : s->config.kill_grace_ms);
}

int
method_process_terminate(struct request *r, const union method_params *params)
{
	const struct process_terminate_params *p = &params->process_terminate;
	struct session_process *sp = session_find(r->session, p->process_id);
	bool running = sp != NULL && terminate(r->session, &sp->process, p);
	struct json_writer w = reply_begin(r->channel, &r->id);

	json_key_bool(&w, "running", running);
	reply_end(r->channel, &w);
	return 0;
}

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
	if (err < 0)
		return reply_os_error(r->channel, &r->id, err);
	recorder_resize(sp, p->rows, p->cols);
	return reply_empty(r);
}

/* Waits for closed instead of exited, so that the output is complete too. */
int
method_process_wait(struct request *r, const union method_params *params)
{
	const struct process_wait_params *p = &params->process_wait;
	struct session_process *sp = method_find_process(r, p->process_id);

	if (sp == NULL)
		return 0;
	if (!sp->process.state.closed && p->timeout_ms > 0 &&
	    !r->client->input_ended)
		return waiter_add(r, sp, NULL, p->timeout_ms);
	report_reply(r->channel, sp, &r->id);
	return 0;
}
