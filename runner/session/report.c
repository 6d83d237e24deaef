/* SPDX-License-Identifier: ISC */
#include "report.h"

#include <event2/event.h>
#include <sys/resource.h>

#include "limit_told.h"
#include "loop.h"
#include "session.h"

/* --- why it ended ------------------------------------------------------- */

/*
 * At the hard limit the kernel kills with SIGKILL and gives no other sign
 * (setrlimit(2)). The kernel counts ticks for the limit, but getrusage(2)
 * measures exactly: on a busy host a process had used 1.68 s when the limit of
 * 2 s killed it. So half of the limit is taken as reached.
 */
static bool
used_all_cpu_time(const struct rusage *usage, uint64_t limit_s)
{
	uint64_t ms =
	    ms_of_timeval(&usage->ru_utime) + ms_of_timeval(&usage->ru_stime);

	return limit_s > 0 && ms >= (limit_s + 1) * 500;
}

static enum end_cause
cause_of_signal(const struct session_process *sp, int sig)
{
	const struct process *p = &sp->process;
	uint32_t cpu_s = sp->session->config.command_cpu_s;

	if (p->oom_killed)
		return END_MEMORY;
	if (sig == SIGXCPU || (sig == SIGKILL && !p->killed &&
				  used_all_cpu_time(&p->usage, cpu_s)))
		return END_CPU_TIME;
	if (sig == SIGXFSZ)
		return END_FILE_SIZE;
	if (sig == SIGSYS && p->sandboxed)
		return END_FILTER;
	return p->killed || p->signals & UINT64_C(1) << sig ? END_CLIENT
							    : END_SIGNAL;
}

enum end_cause
end_cause(const struct session_process *sp)
{
	const struct process *p = &sp->process;

	if (sp->unrecorded)
		return END_RECORDING;
	if (sp->uncovered != NULL)
		return END_FILTER;
	if (p->timed_out)
		return p->deadline_for == DEADLINE_COMMAND
			   ? END_COMMAND_DEADLINE
			   : END_TIMEOUT;
	if (sp->session->terminating || sp->orphaned)
		return END_SESSION;
	if (WIFSIGNALED(p->wait_status))
		return cause_of_signal(sp, WTERMSIG(p->wait_status));
	return END_ITSELF;
}

/* --- the report --------------------------------------------------------- */

static void
write_signal(struct json_writer *w, int sig)
{
	const char *name = sigabbrev_np(sig);
	char number[16];

	snprintf(number, sizeof(number), "%d", sig);
	json_cstring(w, name ? name : number);
}

/* The usage of the command and of the children it waited for (getrusage(2)). */
static void
write_usage(struct json_writer *w, const struct rusage *usage)
{
	json_begin(w, '{');
	json_key_u64(w, "userMs", ms_of_timeval(&usage->ru_utime));
	json_key_u64(w, "systemMs", ms_of_timeval(&usage->ru_stime));
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
	json_key_optional(w, "killedBy", cause);
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
	network_write_denied(w, p);
}

void
report_reply(struct channel *ch, const struct session_process *p,
    const struct rpc_id *id)
{
	struct json_writer w = reply_begin(ch, id);

	report_write(&w, p);
	reply_end(ch, &w);
}

/* Requests that wait for a process, and the answer to process/read. */

static void
write_chunk(const struct retention_chunk *chunk, void *arg)
{
	struct json_writer *w = arg;

	json_begin(w, '{');
	json_key_u64(w, "seq", chunk->seq);
	json_key_cstring(w, "stream", stream_name(chunk->stream));
	json_key_base64(w, "chunk", chunk->data, chunk->len);
	json_end(w, '}');
}

static void
write_gap(struct json_writer *w, const struct process_state *state)
{
	struct process_gap gap = process_state_gap(state);

	json_key_begin(w, "gap", '{');
	json_key_u64(w, "afterSeq", gap.after_seq);
	json_key_u64(w, "lastSeq", gap.last_seq);
	json_key_u64(w, "bytes", gap.bytes);
	json_key_u64(w, "endBytes", gap.end_bytes);
	json_end(w, '}');
}

void
waiter_reply(struct channel *ch, const struct session_process *p,
    const struct rpc_id *id, const struct process_query *query)
{
	const struct process_state *state = &p->process.state;
	struct json_writer w = reply_begin(ch, id);
	uint64_t next;
	bool crosses;

	json_key_begin(&w, "chunks", '[');
	next = process_state_read(state, query, write_chunk, &w, &crosses);
	json_end(&w, ']');
	json_key_u64(&w, "nextSeq", next);
	json_key_bool(&w, "exited", state->exited);
	json_key(&w, "exitCode");
	if (state->exited)
		json_i64(&w, state->exit_code);
	else
		json_null(&w);
	json_key_bool(&w, "closed", state->closed);
	json_key(&w, "failure");
	json_null(&w);
	json_key_bool(&w, "sandboxDenied", state->sandbox_denied);
	if (state->exited) {
		limit_write(&w, p);
		network_write_denied(&w, p);
	}
	/* The peer has no such member; it leaves gaps unmentioned. */
	if (crosses)
		write_gap(&w, state);
	reply_end(ch, &w);
}

static void
waiter_free(struct waiter *w)
{
	TAILQ_REMOVE(&w->process->waiters, w, link);
	w->client->waiting--;
	event_del(&w->timeout);
	rpc_id_clear(&w->id);
	free(w);
}

static void
waiter_finish(struct waiter *w)
{
	if (w->for_end)
		report_reply(&w->client->channel, w->process, &w->id);
	else
		waiter_reply(
		    &w->client->channel, w->process, &w->id, &w->query);
	waiter_free(w);
}

static void
timeout_cb(evutil_socket_t fd, short what, void *arg)
{
	waiter_finish(arg);
}

int
waiter_add(struct request *r, struct session_process *p,
    const struct process_query *query, uint64_t wait_ms)
{
	struct waiter *w;

	if (r->client->waiting >= REQUESTS_WAITING_MAX)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "too many waiting "
		    "requests: limit is %d",
		    REQUESTS_WAITING_MAX);
	w = xcalloc(1, sizeof(*w));
	w->process = p;
	w->client = r->client;
	w->for_end = query == NULL;
	if (query != NULL)
		w->query = *query;
	w->id = r->id;
	r->id = (struct rpc_id){ 0 };
	TAILQ_INSERT_TAIL(&p->waiters, w, link);
	w->client->waiting++;
	event_assign(&w->timeout, p->session->base, -1, 0, timeout_cb, w);
	if (wait_ms < UINT64_MAX)
		loop_add_ms(&w->timeout, wait_ms);
	return RPC_PENDING;
}

void
waiter_wake(struct session_process *p)
{
	const struct process_state *state = &p->process.state;
	struct waiter *w, *next;

	TAILQ_FOREACH_SAFE (w, &p->waiters, link, next)
		if (w->for_end
			? state->closed
			: process_state_has_news(state, w->query.after_seq))
			waiter_finish(w);
}

void
waiter_answer_all(struct session_process *p, const struct client *c)
{
	struct waiter *w, *next;

	TAILQ_FOREACH_SAFE (w, &p->waiters, link, next)
		if (w->client == c)
			waiter_finish(w);
}

void
waiter_drop_all(struct session_process *p, const struct client *c)
{
	struct waiter *w, *next;

	TAILQ_FOREACH_SAFE (w, &p->waiters, link, next)
		if (w->client == c)
			waiter_free(w);
}
