/* SPDX-License-Identifier: ISC */
/*
 * run --json: writes one JSON object per line for each event.
 */
#include "run_json.h"

#define LINE_MAX_BYTES (128u << 20)

static void
begin(struct buf *b, struct json_writer *w, const char *event)
{
	buf_init(b, LINE_MAX_BYTES);
	json_writer_init(w, b);
	json_begin(w, '{');
	json_key_cstring(w, "event", event);
}

static void
end(struct run *r, struct buf *b, struct json_writer *w)
{
	json_end(w, '}');
	buf_puts(b, "\n");
	output_put(&r->out, b->data, b->len);
	buf_clear(b);
}

void
run_json_started(struct run *r, const char *sandbox_type)
{
	struct json_writer w;
	struct buf b;

	begin(&b, &w, "started");
	json_key_cstring(&w, "session", execd_client_session(r->ctl->client));
	json_key_cstring(&w, "process", execd_process_id(r->process));
	json_key_cstring(&w, "sandboxType", sandbox_type);
	end(r, &b, &w);
}

void
run_json_output(
    struct run *r, enum execd_stream stream, const void *data, size_t len)
{
	static const char *const names[] = { [EXECD_STDOUT] = "stdout",
		[EXECD_STDERR] = "stderr",
		[EXECD_TERMINAL] = "terminal" };
	struct json_writer w;
	struct buf b;

	begin(&b, &w, "output");
	json_key_cstring(&w, "stream", names[stream]);
	json_key(&w, "dataBase64");
	json_base64(&w, data, len);
	end(r, &b, &w);
}

void
run_json_gap(struct run *r, uint64_t events, uint64_t bytes)
{
	struct json_writer w;
	struct buf b;

	begin(&b, &w, "lost");
	json_key_u64(&w, "events", events);
	if (bytes > 0)
		json_key_u64(&w, "bytes", bytes);
	end(r, &b, &w);
}

void
run_json_exited(struct run *r, const struct execd_exit *how)
{
	struct json_writer w;
	struct buf b;

	begin(&b, &w, "exited");
	json_key_i64(&w, "exitCode", how->code);
	json_key_bool(&w, "timedOut", r->timed_out);
	json_key_bool(&w, "sandboxDenied", how->sandbox_denied);
	end(r, &b, &w);
}
