/* SPDX-License-Identifier: ISC */
/*
 * Requests of the client, and what belongs to one connection with the server:
 * HTTP bodies that come in pieces, and the watch for missing files. Those end
 * with the connection, and the client is told so.
 */
#include <string.h>

#include "stdio_relay.h"

/*
 * The events of the client's processes. The library delivers each once and in
 * order, over any number of connections. They are numbered anew: a client waits
 * for ever for a number that is missing, and what process/read tells of the end
 * has none.
 */

struct relay_process {
	TAILQ_ENTRY(relay_process) link; /* relay.processes */
	struct relay *relay;
	struct execd_process *handle; /* owned */
	uint64_t seq;		      /* of the last event */
	enum execd_stream notices;    /* the stream for what is lost */
};

static void
forget(struct relay_process *p)
{
	TAILQ_REMOVE(&p->relay->processes, p, link);
	execd_process_free(p->handle);
	free(p);
}

static void
begin_notification(struct json_text *t, const char *method)
{
	json_text_init(t, SIZE_MAX / 2);
	rpc_begin_notification(&t->w, method);
}

static void
end_notification(struct relay *r, struct json_text *t)
{
	rpc_end_notification(&t->w);
	relay_say(r, &t->buf);
}

/* --- what the client is told of a process -------------------------------- */

static void
begin_event(struct relay_process *p, const char *method, struct json_text *t)
{
	begin_notification(t, method);
	json_begin(&t->w, '{');
	json_key_cstring(&t->w, "processId", execd_process_id(p->handle));
	json_key_u64(&t->w, "seq", ++p->seq);
}

static void
end_event(struct relay_process *p, struct json_text *t)
{
	json_end(&t->w, '}');
	end_notification(p->relay, t);
}

static void
on_output(void *arg, enum execd_stream stream, const void *data, size_t len)
{
	static const char *const names[] = { [EXECD_STDOUT] = "stdout",
		[EXECD_STDERR] = "stderr",
		[EXECD_TERMINAL] = "pty" };
	struct relay_process *p = arg;
	struct json_text t;

	begin_event(p, "process/output", &t);
	json_key_cstring(&t.w, "stream", names[stream]);
	json_key_base64(&t.w, "chunk", data, len);
	end_event(p, &t);
}

/* The client has no word for a gap, so it reads of it in the output. */
static void
on_gap(void *arg, uint64_t events, uint64_t bytes)
{
	struct relay_process *p = arg;
	_cleanup_free_ char *much =
	    bytes > 0 ? xasprintf("%llu bytes", (unsigned long long)bytes)
		      : xasprintf("%llu pieces", (unsigned long long)events);
	_cleanup_free_ char *text = xasprintf(
	    "\n[execctl relay: %s of output are lost here: the server no "
	    "longer retained them when the connection was back]\n",
	    much);

	execctl_say(
	    "%s: %s of output are lost", execd_process_id(p->handle), much);
	on_output(p, p->notices, text, strlen(text));
}

static bool
is_written(const struct json_value *member)
{
	static const char *const names[] = { "processId", "seq", "exitCode",
		"sandboxDenied", "running" };

	for (size_t i = 0; i < nitems(names); i++)
		if (slice_equal(member->key,
			(struct slice){ names[i], strlen(names[i]) }))
			return true;
	return false;
}

static void
on_exited(void *arg, const struct execd_exit *how)
{
	struct relay_process *p = arg;
	struct json_text t;

	begin_event(p, "process/exited", &t);
	json_key_i64(&t.w, "exitCode", how->code);
	json_key_bool(&t.w, "sandboxDenied", how->sandbox_denied);
	if (how->details != NULL)
		for (const struct json_value *v = how->details->first; v;
		     v = v->next)
			if (!is_written(v))
				json_copy_member(&t.w, v);
	end_event(p, &t);
}

static void
on_closed(void *arg)
{
	struct relay_process *p = arg;
	struct json_text t;

	begin_event(p, "process/closed", &t);
	end_event(p, &t);
	forget(p);
}

/* The answer to a start that failed has gone to the client. What became of any
 * other process is not known, and there is no event that says so. */
static void
on_failed(void *arg, int code, const char *message)
{
	struct relay_process *p = arg;
	struct relay *r = p->relay;

	if (code == EXECD_CODE_LOST && !r->over &&
	    execd_client_state(r->ctl->client) != EXECD_OVER)
		relay_finish(r, execctl_fail(r->ctl, EXIT_CTL_UNKNOWN,
				    "process %s: %s; what became of it is "
				    "unknown",
				    execd_process_id(p->handle), message));
	forget(p);
}

/* --- Starts ------------------------------------------------------------- */

static bool
is_known(const struct relay *r, const char *id)
{
	const struct relay_process *p;

	TAILQ_FOREACH (p, &r->processes, link)
		if (strcmp(execd_process_id(p->handle), id) == 0)
			return true;
	return false;
}

/* Passes process/start on. params has `id'. fn gets the answer. Returns false
 * if the client has such a process already; then fn is not called. */
static bool
relay_start(struct relay *r, const char *id, const char *params, size_t len,
    execd_answer_fn *fn, void *arg)
{
	static const struct execd_process_events events = {
		.output = on_output,
		.gap = on_gap,
		.exited = on_exited,
		.closed = on_closed,
		.failed = on_failed,
	};
	struct relay_process *p;

	if (is_known(r, id))
		return false;
	p = xcalloc(1, sizeof(*p));
	p->relay = r;
	p->notices = memmem(params, len, "\"tty\":true", 10) ? EXECD_TERMINAL
							     : EXECD_STDERR;
	TAILQ_INSERT_TAIL(&r->processes, p, link);
	p->handle = execd_process_pass(
	    r->ctl->client, id, params, len, &events, p, fn, arg);
	return true;
}

void
relay_forget_processes(struct relay *r)
{
	while (!TAILQ_EMPTY(&r->processes))
		forget(TAILQ_FIRST(&r->processes));
}

/* The methods whose requests are sent again when their answer was lost. */
static const char *const repeatable[] = {
#define AGAIN(wire) wire,
#define ONCE(wire)
#define METHOD(name, wire, family, when, repeat)     repeat(wire)
#define FILE_METHOD(name, wire, family, use, repeat) repeat(wire)
#define HTTP_METHOD(name, wire)
#include "methods.def"
#undef METHOD
#undef FILE_METHOD
#undef HTTP_METHOD
};

struct relay_stream {
	TAILQ_ENTRY(relay_stream) link; /* relay.streams */
	uint64_t seq;			/* of the last piece */
	size_t len;
	char id[]; /* as it was parsed; len bytes */
};

enum passed { PASSED, PASSED_STREAM, PASSED_WATCH, PASSED_KEEP, PASSED_END };

struct passed_request {
	struct relay *relay;
	struct rpc_id id;
	enum passed kind;
	struct relay_stream *stream; /* PASSED_STREAM; not in the list yet */
	uint64_t watch_id;	     /* PASSED_WATCH */
};

/* --- Answers ------------------------------------------------------------ */

/* What the answer begins or ends. */
static void
take_effect(struct passed_request *p, const struct execd_answer *a)
{
	struct relay *r = p->relay;

	if (a->code != 0)
		return;
	if (p->kind == PASSED_STREAM) {
		TAILQ_INSERT_TAIL(&r->streams, p->stream, link);
		p->stream = NULL;
	} else if (p->kind == PASSED_WATCH) {
		r->watching =
		    execd_json_bool(json_get(a->result, "watching"), false);
		r->watch_id = p->watch_id;
	} else if (p->kind == PASSED_KEEP) {
		/* What is kept does not end with the relay. */
		if (execd_json_number(json_get(a->result, "maxMs"), 0) > 0)
			r->ctl->ends = false;
	} else if (p->kind == PASSED_END) {
		relay_finish(r, 0);
	}
}

static void
answered(void *arg, const struct execd_answer *a)
{
	struct passed_request *p = arg;
	struct relay *r = p->relay;
	struct json_text t;

	r->unanswered--;
	if (a->code != 0) {
		relay_say_error(r, &p->id,
		    a->code == EXECD_CODE_LOST	     ? RPC_INTERNAL
		    : a->code == EXECD_CODE_TOO_LONG ? RPC_MALFORMED
						     : a->code,
		    a->message);
	} else {
		json_text_init(&t, SIZE_MAX / 2);
		rpc_begin_result(&t.w, &p->id);
		json_copy(&t.w, a->result);
		rpc_end_result(&t.w);
		relay_say(r, &t.buf);
	}
	take_effect(p, a);
	free(p->stream);
	rpc_id_clear(&p->id);
	free(p);
}

/* --- Requests ----------------------------------------------------------- */

static bool
method_is(const struct rpc_message *m, const char *name)
{
	return slice_equal(m->method, (struct slice){ name, strlen(name) });
}

static unsigned int
flags_of(const struct rpc_message *m)
{
	for (size_t i = 0; i < nitems(repeatable); i++)
		if (method_is(m, repeatable[i]))
			return EXECD_REPEAT;
	if (method_is(m, "fs/createDirectory") &&
	    execd_json_bool(json_get(m->params, "recursive"), false))
		return EXECD_REPEAT;
	return 0;
}

static struct relay_stream *
new_stream(const struct json_value *id)
{
	struct relay_stream *s = xcalloc(1, sizeof(*s) + id->text.len);

	s->len = id->text.len;
	memcpy(s->id, id->text.ptr, s->len);
	return s;
}

static struct passed_request *
new_request(struct relay *r, const struct rpc_message *m)
{
	struct passed_request *p = xcalloc(1, sizeof(*p));
	const struct json_value *id = json_get(m->params, "requestId");
	const struct json_value *watch = json_get(m->params, "watchId");

	p->relay = r;
	rpc_id_copy(&p->id, m->id);
	if (method_is(m, "http/request") && id != NULL &&
	    id->type == JSON_STRING &&
	    execd_json_bool(json_get(m->params, "streamResponse"), false)) {
		p->kind = PASSED_STREAM;
		p->stream = new_stream(id);
	} else if (method_is(m, "fs/watchMissing") && watch != NULL &&
		   json_to_u64(watch, &p->watch_id) == 0) {
		p->kind = PASSED_WATCH;
	} else if (method_is(m, "session/keep")) {
		p->kind = PASSED_KEEP;
	} else if (method_is(m, "session/end")) {
		p->kind = PASSED_END;
	}
	r->unanswered++;
	return p;
}

static void
refuse(struct relay *r, const struct rpc_message *m, int code, const char *why)
{
	struct rpc_id id;

	rpc_id_copy(&id, m->id);
	relay_say_error(r, &id, code, why);
	rpc_id_clear(&id);
}

/* A server that knows startId gives a start that is repeated the same answer as
 * the first time. */
static void
write_start(
    const struct relay *r, struct json_writer *w, const struct rpc_message *m)
{
	_cleanup_free_ char *start_id = NULL;

	json_begin(w, '{');
	for (const struct json_value *v = m->params->first; v; v = v->next)
		json_copy_member(w, v);
	if (execd_client_can(r->ctl->client, "processStartId") &&
	    json_get(m->params, "startId") == NULL) {
		start_id = xasprintf("relay-%lld", (long long)now_ms());
		json_key_cstring(w, "startId", start_id);
	}
	json_end(w, '}');
}

static void
pass_start(struct relay *r, const struct rpc_message *m, struct buf *params)
{
	const struct json_value *v = json_get(m->params, "processId");
	_cleanup_free_ char *id = xstrndup(v->text.ptr, v->text.len);
	struct passed_request *p = new_request(r, m);

	if (relay_start(
		r, id, (const char *)params->data, params->len, answered, p))
		return;
	refuse(r, m, RPC_MALFORMED, "process ID already exists");
	r->unanswered--;
	rpc_id_clear(&p->id);
	free(p);
}

/* Tells whether the events of this process/start can be followed. Any other
 * start is an error of decoding, which the server answers. */
static bool
is_start(const struct rpc_message *m)
{
	const struct json_value *id = json_get(m->params, "processId");

	return method_is(m, "process/start") && id != NULL &&
	       id->type == JSON_STRING &&
	       memchr(id->text.ptr, '\0', id->text.len) == NULL;
}

static void
pass(struct relay *r, const struct rpc_message *m)
{
	_cleanup_free_ char *method = xstrndup(m->method.ptr, m->method.len);
	struct json_text t;

	json_text_init(&t, SIZE_MAX / 2);
	if (is_start(m)) {
		write_start(r, &t.w, m);
		pass_start(r, m, &t.buf);
	} else {
		if (m->params != NULL)
			json_copy(&t.w, m->params);
		execd_client_request(r->ctl->client, method,
		    m->params ? (const char *)t.buf.data : NULL, t.buf.len,
		    flags_of(m), answered, new_request(r, m));
	}
	buf_clear(&t.buf);
}

void
relay_request(struct relay *r, const struct rpc_message *m)
{
	static const struct slice old = { "command/", 8 };

	if (!r->ready)
		refuse(r, m, RPC_MALFORMED,
		    "client must call initialize before using any method");
	else if (memchr(m->method.ptr, '\0', m->method.len) != NULL)
		refuse(r, m, RPC_UNKNOWN_METHOD,
		    "a method with a NUL inside is not passed on");
	else if (m->method.len >= old.len &&
		 memcmp(m->method.ptr, old.ptr, old.len) == 0)
		refuse(r, m, RPC_UNKNOWN_METHOD,
		    "execctl relay does not pass on the first version of the "
		    "protocol: its commands cannot be resumed");
	else
		pass(r, m);
}

/* --- Notifications ------------------------------------------------------ */

static struct relay_stream *
find_stream(struct relay *r, const struct json_value *id)
{
	struct relay_stream *s;

	TAILQ_FOREACH (s, &r->streams, link)
		if (id != NULL && id->type == JSON_STRING &&
		    id->text.len == s->len &&
		    memcmp(id->text.ptr, s->id, s->len) == 0)
			return s;
	return NULL;
}

static void
drop_stream(struct relay *r, struct relay_stream *s)
{
	TAILQ_REMOVE(&r->streams, s, link);
	free(s);
}

static void
note_piece(struct relay *r, const struct json_value *params)
{
	struct relay_stream *s = find_stream(r, json_get(params, "requestId"));
	const struct json_value *seq = json_get(params, "seq");

	if (s == NULL)
		return;
	if (seq != NULL)
		json_to_u64(seq, &s->seq);
	if (execd_json_bool(json_get(params, "done"), false))
		drop_stream(r, s);
}

void
relay_notified(void *arg, const char *method, const struct json_value *params)
{
	struct relay *r = arg;
	struct json_text t;

	if (strcmp(method, "http/request/bodyDelta") == 0)
		note_piece(r, params);
	else if (strcmp(method, "fs/missingChanged") == 0)
		r->watching = false;
	begin_notification(&t, method);
	json_copy(&t.w, params);
	end_notification(r, &t);
}

/*
 * The server counts its requests from 1, over all connections of the session,
 * and so the client sees the numbers of the server. What the client answers
 * after the connection was lost is late, and the server ignores it.
 */
void
relay_asked(
    void *arg, uint64_t id, const char *method, const struct json_value *params)
{
	struct relay *r = arg;
	struct json_text t;

	if (id > r->asked)
		r->asked = id;
	json_text_init(&t, SIZE_MAX / 2);
	rpc_begin_request(&t.w, id, method);
	json_copy(&t.w, params);
	rpc_end_request(&t.w);
	relay_say(r, &t.buf);
}

/* --- The lost connection ------------------------------------------------ */

static void
end_stream(struct relay *r, const struct relay_stream *s)
{
	struct json_text t;

	begin_notification(&t, "http/request/bodyDelta");
	json_begin(&t.w, '{');
	json_key_string(&t.w, "requestId", s->id, s->len);
	json_key_u64(&t.w, "seq", s->seq + 1);
	json_key_cstring(&t.w, "deltaBase64", "");
	json_key_bool(&t.w, "done", true);
	json_key_cstring(&t.w, "error",
	    "the connection to the exec-server was lost, and the rest of the "
	    "body with it");
	json_end(&t.w, '}');
	end_notification(r, &t);
}

/* A change may have been missed, and there is no watch any more. Told of one,
 * the client looks, and watches again. */
static void
end_watch(struct relay *r)
{
	struct json_text t;

	r->watching = false;
	begin_notification(&t, "fs/missingChanged");
	json_begin(&t.w, '{');
	json_key_u64(&t.w, "watchId", r->watch_id);
	json_end(&t.w, '}');
	end_notification(r, &t);
}

void
relay_lost(struct relay *r)
{
	struct relay_stream *s;

	while ((s = TAILQ_FIRST(&r->streams)) != NULL) {
		end_stream(r, s);
		drop_stream(r, s);
	}
	if (r->watching)
		end_watch(r);
}

void
relay_forget(struct relay *r)
{
	while (!TAILQ_EMPTY(&r->streams))
		drop_stream(r, TAILQ_FIRST(&r->streams));
}
