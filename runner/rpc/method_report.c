/* SPDX-License-Identifier: ISC */
/*
 * process/snapshot and process/list: the state of one process, and of all
 * (doc/protocol.md section 17).
 */
#include <string.h>

#include "methods.h"
#include "report.h"

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

static void
write_texts(struct json_writer *w, const struct snapshot *s)
{
	for (size_t i = 0; i < STREAM_COUNT; i++) {
		json_key(w, snapshot_names[i]);
		json_base64(w, s->text[i].data, s->text[i].len);
	}
}

/* For each stream: how many bytes are missing, and where in its text. */
static void
write_gaps(struct json_writer *w, const struct snapshot *s)
{
	json_key(w, "gaps");
	json_begin(w, '[');
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

	write_texts(w, s);
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

	json_key(w, "argv");
	json_begin(w, '[');
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

	json_key(&w, "processes");
	json_begin(&w, '[');
	TAILQ_FOREACH (sp, &r->session->started, link) {
		if (sp->number <= after || sp->v0)
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
