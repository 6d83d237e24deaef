/* SPDX-License-Identifier: ISC */
/*
 * Requests and their answers. A repeatable request keeps its message until the
 * answer comes, so that it can be sent again on a new connection.
 */

#include "client.h"

static void
call_free(struct call *call)
{
	buf_clear(&call->message);
	free(call);
}

static void
call_finish(
    struct execd_client *c, struct call *call, const struct execd_answer *a)
{
	TAILQ_REMOVE(&c->calls, call, link);
	if (call->fn != NULL)
		call->fn(call->arg, a);
	call_free(call);
}

static void
call_fail(struct execd_client *c, struct call *call, int code, const char *why)
{
	struct execd_answer a = {
		.code = code, .message = why, .repeated = call->sent > 1
	};

	call_finish(c, call, &a);
}

static void
call_send(struct execd_client *c, struct call *call)
{
	wire_send(c, (const char *)call->message.data, call->message.len);
	call->sent++;
	call->in_flight = true;
	if (!(call->flags & EXECD_REPEAT))
		buf_clear(&call->message);
}

/* --- Asking ------------------------------------------------------------- */

static void
write_call(
    struct call *call, const char *method, const char *params, size_t len)
{
	struct json_writer w;

	json_writer_init(&w, &call->message);
	json_begin(&w, '{');
	json_key_u64(&w, "id", call->id);
	json_key_cstring(&w, "method", method);
	if (params != NULL) {
		json_key(&w, "params");
		json_raw(&w, params, len);
	}
	json_end(&w, '}');
}

static struct call *
call_new(
    struct execd_client *c, unsigned int flags, execd_answer_fn *fn, void *arg)
{
	struct call *call = xcalloc(1, sizeof(*call));

	call->id = c->next_id++;
	call->flags = flags;
	call->fn = fn;
	call->arg = arg;
	return call;
}

static void
call_begin(struct execd_client *c, struct call *call, const char *method,
    const char *params, size_t len)
{
	buf_init(&call->message, CLIENT_SEND_MAX);
	write_call(call, method, params, len);
	TAILQ_INSERT_TAIL(&c->calls, call, link);
	if (call->message.failed)
		call_fail(c, call, EXECD_CODE_TOO_LONG,
		    "the request is longer than 16 MiB");
	else if (c->state == EXECD_OVER)
		call_fail(c, call, EXECD_CODE_LOST, execd_client_error(c));
	else if (c->link == LINK_READY)
		call_send(c, call);
}

void
execd_client_request(struct execd_client *c, const char *method,
    const char *params, size_t len, unsigned int flags, execd_answer_fn *fn,
    void *arg)
{
	call_begin(c, call_new(c, flags, fn, arg), method, params, len);
}

void
calls_begin(struct buf *b, struct json_writer *w)
{
	buf_init(b, CLIENT_SEND_MAX);
	json_writer_init(w, b);
	json_begin(w, '{');
}

void
calls_send(struct execd_process *p, const char *method, struct buf *b,
    struct json_writer *w, execd_answer_fn *fn, void *arg)
{
	struct execd_client *c = process_client(p);
	struct call *call = call_new(c, EXECD_REPEAT, fn, arg);

	call->owner = p;
	json_end(w, '}');
	call_begin(c, call, method, (const char *)b->data, b->len);
	buf_clear(b);
}

void
calls_orphan(const struct execd_process *p)
{
	struct call *call;

	TAILQ_FOREACH (call, &process_client(p)->calls, link)
		if (call->owner == p)
			call->fn = NULL;
}

/* Counts the bytes in the send queue and the requests that wait for a
 * connection. */
size_t
execd_client_queued(const struct execd_client *c)
{
	size_t n = c->out.len - c->out_at;
	const struct call *call;

	TAILQ_FOREACH (call, &c->calls, link)
		if (!call->in_flight)
			n += call->message.len;
	return n;
}

bool
calls_any(const struct execd_client *c)
{
	return !TAILQ_EMPTY(&c->calls);
}

/* --- Answers ------------------------------------------------------------ */

static struct call *
find_call(struct execd_client *c, const struct json_value *id)
{
	struct call *call;
	uint64_t wanted;

	if (id == NULL || json_to_u64(id, &wanted) < 0)
		return NULL;
	TAILQ_FOREACH (call, &c->calls, link)
		if (call->id == wanted && call->in_flight)
			return call;
	return NULL;
}

static void
finish_with_error(struct execd_client *c, struct call *call,
    struct execd_answer *a, const struct json_value *error)
{
	const struct json_value *message = json_get(error, "message");
	_cleanup_free_ char *text =
	    xstrndup(message->text.ptr, message->text.len);

	a->code = (int)execd_json_number(json_get(error, "code"), 0);
	if (a->code == 0)
		a->code = RPC_INTERNAL;
	a->message = text;
	call_finish(c, call, a);
}

void
calls_answer(struct execd_client *c, const struct rpc_message *m,
    const char *text, size_t len)
{
	const struct json_value *id = json_get(m->doc.root, "id");
	struct call *call = find_call(c, id);
	struct execd_answer a = { .text = text, .text_len = len };
	uint64_t zero;

	if (c->link == LINK_INITIALIZE) {
		/* Only initialize was sent, with id 0. The server uses id -1
		 * for a message that it could not parse. */
		if (json_to_u64(id, &zero) < 0 || zero == 0)
			link_initialized(c, m, text, len);
		return;
	}
	if (call == NULL)
		return;
	a.result = json_get(m->doc.root, "result");
	a.repeated = call->sent > 1;
	if (a.result != NULL)
		call_finish(c, call, &a);
	else
		finish_with_error(c, call, &a, json_get(m->doc.root, "error"));
}

/* --- When the connection goes ------------------------------------------- */

void
calls_lost(struct execd_client *c)
{
	struct call *call, *next;

	/* Requests that a callback makes here are not in flight yet, so the
	 * loop leaves them alone. */
	TAILQ_FOREACH_SAFE (call, &c->calls, link, next) {
		if (call->in_flight && !(call->flags & EXECD_REPEAT))
			call_fail(c, call, EXECD_CODE_LOST,
			    "the connection was lost before the answer; "
			    "whether it was done is unknown");
		else
			call->in_flight = false;
	}
}

void
calls_resume(struct execd_client *c)
{
	struct call *call;

	TAILQ_FOREACH (call, &c->calls, link)
		if (!call->in_flight)
			call_send(c, call);
}

void
calls_fail_all(struct execd_client *c)
{
	while (!TAILQ_EMPTY(&c->calls))
		call_fail(c, TAILQ_FIRST(&c->calls), EXECD_CODE_LOST,
		    execd_client_error(c));
}
