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
	json_key(w, "event");
	json_cstring(w, event);
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
	json_key(&w, "session");
	json_cstring(&w, execd_client_session(r->ctl->client));
	json_key(&w, "process");
	json_cstring(&w, execd_process_id(r->process));
	json_key(&w, "sandboxType");
	json_cstring(&w, sandbox_type);
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
	json_key(&w, "stream");
	json_cstring(&w, names[stream]);
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
	json_key(&w, "events");
	json_u64(&w, events);
	if (bytes > 0) {
		json_key(&w, "bytes");
		json_u64(&w, bytes);
	}
	end(r, &b, &w);
}

void
run_json_exited(struct run *r, const struct execd_exit *how)
{
	struct json_writer w;
	struct buf b;

	begin(&b, &w, "exited");
	json_key(&w, "exitCode");
	json_i64(&w, how->code);
	json_key(&w, "timedOut");
	json_bool(&w, r->timed_out);
	json_key(&w, "sandboxDenied");
	json_bool(&w, how->sandbox_denied);
	end(r, &b, &w);
}
