/* SPDX-License-Identifier: ISC */
/* The state of a process and how it ended. */
#include "report.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "end_cause.h"
#include "session.h"

static void
write_signal(struct json_writer *w, int sig)
{
	const char *name = sigabbrev_np(sig);
	char number[16];

	snprintf(number, sizeof(number), "%d", sig);
	json_cstring(w, name ? name : number);
}

static uint64_t
to_ms(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * 1000 + (uint64_t)tv->tv_usec / 1000;
}

/* The usage of the command and of the children it waited for (getrusage(2)). */
static void
write_usage(struct json_writer *w, const struct rusage *usage)
{
	json_begin(w, '{');
	json_key_u64(w, "userMs", to_ms(&usage->ru_utime));
	json_key_u64(w, "systemMs", to_ms(&usage->ru_stime));
	json_key_u64(w, "maxRssBytes", (uint64_t)usage->ru_maxrss << 10);
	json_end(w, '}');
}

static void
write_end(struct json_writer *w, const struct session_process *sp)
{
	const struct process *p = &sp->process;
	bool signalled = p->state.exited && WIFSIGNALED(p->wait_status);
	const char *cause =
	    p->state.exited ? control_cause_name(end_cause(sp)) : NULL;

	json_key(w, "signal");
	if (signalled)
		write_signal(w, WTERMSIG(p->wait_status));
	else
		json_null(w);
	json_key_bool(w, "core", signalled && WCOREDUMP(p->wait_status));
	json_key_bool(w, "oomKilled", p->oom_killed);
	json_key_bool(w, "timedOut", p->timed_out);
	json_key(w, "killedBy");
	if (cause != NULL)
		json_cstring(w, cause);
	else
		json_null(w);
	json_key(w, "rusage");
	if (p->state.exited)
		write_usage(w, &p->usage);
	else
		json_null(w);
}

void
report_write(struct json_writer *w, const struct session_process *p)
{
	const struct process_state *state = &p->process.state;

	json_key_bool(w, "running", !state->exited);
	json_key(w, "exitCode");
	if (state->exited)
		json_i64(w, state->exit_code);
	else
		json_null(w);
	json_key_bool(w, "closed", state->closed);
	json_key_bool(w, "sandboxDenied", state->sandbox_denied);
	write_end(w, p);
	json_key_u64(w, "bytesWritten", state->output_bytes);
	json_key_u64(w, "bytesDropped", retention_dropped(&state->tail));
}

void
report_reply(struct channel *ch, const struct session_process *p,
    const struct rpc_id *id)
{
	struct json_writer w = reply_begin(ch, id);

	report_write(&w, p);
	reply_end(ch, &w);
}
