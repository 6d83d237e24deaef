/* SPDX-License-Identifier: ISC */
/*
 * Decodes the events of a process from JSON.
 */
#include <string.h>

#include "base64.h"
#include "remote_process.h"

static bool
decode_stream(enum execd_stream *out, const struct json_value *v)
{
	static const char *const names[] = { [EXECD_STDOUT] = "stdout",
		[EXECD_STDERR] = "stderr",
		[EXECD_TERMINAL] = "pty" };

	for (size_t i = 0; i < nitems(names); i++) {
		if (!json_is(v, names[i]))
			continue;
		*out = (enum execd_stream)i;
		return true;
	}
	return false;
}

bool
event_decode_chunk(struct event *e, const struct json_value *chunk)
{
	const struct json_value *seq = json_get(chunk, "seq");
	const struct json_value *data = json_get(chunk, "chunk");
	char error[BASE64_ERROR_MAX];
	ssize_t n;

	*e = (struct event){ .kind = EVENT_OUTPUT };
	if (seq == NULL || json_to_u64(seq, &e->seq) < 0 || data == NULL ||
	    data->type != JSON_STRING ||
	    !decode_stream(&e->stream, json_get(chunk, "stream")))
		return false;
	e->data = xmalloc(base64_decoded_max(data->text.len));
	n = base64_decode(e->data, data->text.ptr, data->text.len, error);
	if (n < 0) {
		free(e->data);
		return false;
	}
	e->len = (size_t)n;
	return true;
}

void
event_decode_exit(struct execd_exit *how, const struct json_value *params)
{
	*how = (struct execd_exit){
		.code =
		    (int)execd_json_number(json_get(params, "exitCode"), -1),
		.sandbox_denied =
		    execd_json_bool(json_get(params, "sandboxDenied"), false),
		.timed_out =
		    execd_json_bool(json_get(params, "timedOut"), false),
		.details = params,
	};
}

static bool
is_method(const char *method, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(method, name, len) == 0;
}

bool
event_decode(struct event *e, const char *method, size_t len,
    const struct json_value *params)
{
	const struct json_value *seq = json_get(params, "seq");

	if (is_method(method, len, "process/output"))
		return event_decode_chunk(e, params);
	*e = (struct event){ .kind = EVENT_CLOSED };
	if (is_method(method, len, "process/exited")) {
		e->kind = EVENT_EXITED;
		event_decode_exit(&e->how, params);
		if (e->how.code < 0)
			return false;
	}
	return seq != NULL && json_to_u64(seq, &e->seq) == 0;
}
