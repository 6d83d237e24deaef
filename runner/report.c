/*
 * How a process stands and how it ended.
 */
#include "report.h"

void
report_write(struct json_writer *w, const struct session_process *p)
{
	const struct process_state *state = &p->process.state;

	json_key(w, "running");
	json_bool(w, !state->exited);
	json_key(w, "exitCode");
	if (state->exited)
		json_i64(w, state->exit_code);
	else
		json_null(w);
	json_key(w, "closed");
	json_bool(w, state->closed);
}

void
report_reply(struct session_process *p, const struct rpc_id *id)
{
	struct json_writer w = reply_begin(&p->session->channel, id);

	json_begin(&w, '{');
	report_write(&w, p);
	json_end(&w, '}');
	reply_end(&p->session->channel, &w);
}
