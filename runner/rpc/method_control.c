/* SPDX-License-Identifier: ISC */
/*
 * The process/ methods that act on a running process: signals, ending it, its
 * input and its terminal; also waiting for its end, and what its state and that
 * of all processes is (doc/protocol.md sections 7.6, 17).
 */

#include "base.h"
#include "methods.h"
#include "report.h"
#include "session.h"

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

int
method_process_arrived(struct request *r, const union method_params *params)
{
	const struct process_arrived_params *p = &params->process_arrived;
	struct session_process *sp = method_find_process(r, p->process_id);

	if (sp == NULL)
		return 0;
	process_state_arrived(&sp->process.state, p->bytes);
	process_resume(&sp->process);
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

/* An answer of process/list this large gets no further entry. */
#define LIST_BYTES (1u << 20)

/* --- process/snapshot --------------------------------------------------- */

static const char *const snapshot_names[STREAM_COUNT] = { "stdout", "stderr",
	"terminal" };

struct snapshot {
	const struct process_state *state;
	struct buf text[STREAM_COUNT];
	size_t head_bytes[STREAM_COUNT]; /* of text, before the gap */
};

static void
collect(const struct retention_chunk *chunk, void *arg)
{
	struct snapshot *s = arg;

	buf_put(&s->text[chunk->stream], chunk->data, chunk->len);
	if (chunk->seq <= s->state->head_seq)
		s->head_bytes[chunk->stream] += chunk->len;
}

/* For each stream: how many bytes are missing, and where in its text. */
static void
write_gaps(struct json_writer *w, const struct snapshot *s)
{
	json_key_begin(w, "gaps", '[');
	for (size_t i = 0; i < STREAM_COUNT; i++) {
		if (s->state->tail.dropped_bytes[i] == 0)
			continue;
		json_begin(w, '{');
		json_key_cstring(w, "stream", snapshot_names[i]);
		json_key_u64(w, "offset", s->head_bytes[i]);
		json_key_u64(w, "bytes", s->state->tail.dropped_bytes[i]);
		json_end(w, '}');
	}
	json_end(w, ']');
}

static void
write_snapshot(
    struct json_writer *w, const struct session_process *sp, struct snapshot *s)
{
	static const struct process_query everything = { 0, UINT64_MAX };
	bool crosses;
	uint64_t next =
	    process_state_read(s->state, &everything, collect, s, &crosses);

	for (size_t i = 0; i < STREAM_COUNT; i++) {
		json_key_base64(
		    w, snapshot_names[i], s->text[i].data, s->text[i].len);
	}
	json_key_bool(w, "truncated", retention_dropped(&s->state->tail) > 0);
	write_gaps(w, s);
	json_key_u64(w, "nextSeq", next);
	report_write(w, sp);
}

int
method_process_snapshot(struct request *r, const union method_params *params)
{
	struct session_process *sp =
	    method_find_process(r, params->process_id.process_id);
	struct snapshot s = { 0 };
	struct json_writer w;

	if (sp == NULL)
		return 0;
	s.state = &sp->process.state;
	/* The text cannot be longer than what is retained. */
	for (size_t i = 0; i < STREAM_COUNT; i++)
		buf_init(&s.text[i], s.state->head.bytes + s.state->tail.bytes);
	w = reply_begin(r->channel, &r->id);
	write_snapshot(&w, sp, &s);
	reply_end(r->channel, &w);
	for (size_t i = 0; i < STREAM_COUNT; i++)
		buf_clear(&s.text[i]);
	return 0;
}

/* --- process/list ------------------------------------------------------- */

static void
write_command(struct json_writer *w, const struct session_process *sp)
{
	const char *at = sp->command, *end = at + sp->command_len;

	json_key_begin(w, "argv", '[');
	while (at < end) {
		json_cstring(w, at);
		at += strlen(at) + 1;
	}
	json_end(w, ']');
	json_key_bool(w, "argvTruncated", sp->command_cut);
}

static void
write_entry(struct json_writer *w, const struct session_process *sp)
{
	json_begin(w, '{');
	json_key_string(w, "processId", sp->id, sp->id_len);
	json_key_i64(w, "pid", sp->process.leader);
	write_command(w, sp);
	json_key_bool(w, "tty", sp->process.tty);
	json_key_i64(w, "startedAtMs", sp->started_wall_ms);
	report_write(w, sp);
	json_end(w, '}');
}

/* If the list is too long for one answer, `next` says where to continue. */
int
method_process_list(struct request *r, const union method_params *params)
{
	uint64_t after = params->process_list.after;
	struct json_writer w = reply_begin(r->channel, &r->id);
	size_t begin = w.buf->len;
	struct session_process *sp;

	json_key_begin(&w, "processes", '[');
	TAILQ_FOREACH (sp, &r->session->started, link) {
		if (sp->number <= after || sp->v0 || sp->orphaned)
			continue;
		if (w.buf->len - begin > LIST_BYTES)
			break;
		write_entry(&w, sp);
		after = sp->number;
	}
	json_end(&w, ']');
	json_key(&w, "next");
	if (sp != NULL)
		json_u64(&w, after);
	else
		json_null(&w);
	reply_end(r->channel, &w);
	return 0;
}
