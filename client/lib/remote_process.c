/* SPDX-License-Identifier: ISC */
/*
 * Decodes the events of a process and delivers them in order. After a resume,
 * or when a number is missing, it asks the server with process/read.
 */
#include "client.h"

#include "base64.h"
#include "capabilities.h"

#define MANY_CHUNKS   4		   /* in one answer to process/read */
#define ARRIVED_BYTES (256u << 10) /* of output, between two messages */

/* --- decoding ----------------------------------------------------------- */

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

/* Decode one event. True: the caller frees e->data, and e->how.details points
 * into params. False: the event is malformed, and there is nothing to free. */
static bool
decode_chunk(struct event *e, const struct json_value *chunk)
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

static void
decode_exit(struct execd_exit *how, const struct json_value *params)
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

static bool
decode_event(struct event *e, const char *method, size_t len,
    const struct json_value *params)
{
	const struct json_value *seq = json_get(params, "seq");

	if (is_method(method, len, "process/output"))
		return decode_chunk(e, params);
	*e = (struct event){ .kind = EVENT_CLOSED };
	if (is_method(method, len, "process/exited")) {
		e->kind = EVENT_EXITED;
		decode_exit(&e->how, params);
		if (e->how.code < 0)
			return false;
	}
	return seq != NULL && json_to_u64(seq, &e->seq) == 0;
}

/* --- Handing out -------------------------------------------------------- */

static void
drop_held(struct execd_process *p)
{
	struct event *e;

	while ((e = TAILQ_FIRST(&p->held)) != NULL) {
		TAILQ_REMOVE(&p->held, e, link);
		free(e->data);
		free(e);
	}
	p->held_bytes = 0;
}

void
process_fail(struct execd_process *p, int code, const char *message)
{
	if (p->ended)
		return;
	p->ended = true;
	drop_held(p);
	if (p->events.failed != NULL)
		p->events.failed(p->arg, code, message);
}

void
process_enter(struct execd_process *p)
{
	p->busy++;
}

void
process_leave(struct execd_process *p)
{
	if (--p->busy > 0 || !p->freed)
		return;
	drop_held(p);
	free(p->id);
	free(p);
}

static void
hand_out_exit(struct execd_process *p, const struct execd_exit *how)
{
	if (p->exited)
		return;
	p->exited = true;
	if (p->events.exited != NULL)
		p->events.exited(p->arg, how);
}

/* A command may wait for this. */
static void
tell_arrived(struct execd_process *p)
{
	struct json_text t;

	if (!p->holds || p->bytes - p->told_bytes < ARRIVED_BYTES)
		return;
	p->told_bytes = p->bytes;
	process_begin(p, &t);
	json_key_u64(&t.w, "bytes", p->bytes);
	calls_send(p, "process/arrived", &t, NULL, NULL);
}

static void
hand_out(struct execd_process *p, const struct event *e)
{
	p->last = e->seq;
	switch (e->kind) {
	case EVENT_OUTPUT:
		p->bytes += e->len;
		tell_arrived(p);
		if (p->events.output != NULL && e->len > 0)
			p->events.output(p->arg, e->stream, e->data, e->len);
		break;
	case EVENT_EXITED:
		hand_out_exit(p, &e->how);
		break;
	case EVENT_CLOSED:
		p->ended = true;
		if (p->events.closed != NULL)
			p->events.closed(p->arg);
		break;
	}
}

/* --- Live events -------------------------------------------------------- */

static void
hold(struct execd_process *p, const struct event *e)
{
	struct event *kept = xmalloc(sizeof(*kept)), *before;

	*kept = *e;
	/* The details point into the message, which is freed soon. */
	kept->how.details = NULL;
	before = TAILQ_LAST(&p->held, event_list);
	while (before != NULL && before->seq > kept->seq)
		before = TAILQ_PREV(before, event_list, link);
	if (before != NULL)
		TAILQ_INSERT_AFTER(&p->held, before, kept, link);
	else
		TAILQ_INSERT_HEAD(&p->held, kept, link);
	p->held_bytes += sizeof(*kept) + kept->len;
	if (p->held_bytes > PROCESS_HELD_MAX)
		process_fail(p, EXECD_CODE_LOST,
		    "more than 64 MiB of output came before the output that "
		    "is missing");
}

/* Returns true if it took ownership of the event's data. */
static bool
take_event(struct execd_process *p, const struct event *e)
{
	if (p->ended || e->seq <= p->last)
		return false;
	if (!p->reading && e->seq == p->last + 1) {
		hand_out(p, e);
		return false;
	}
	process_read(p);
	hold(p, e);
	return true;
}

static struct execd_process *
find_process(struct execd_client *c, const struct json_value *id)
{
	struct execd_process *p;

	TAILQ_FOREACH (p, &c->processes, link)
		if (json_is(id, p->id))
			return p;
	return NULL;
}

bool
process_notification(struct execd_client *c, const struct rpc_message *m)
{
	static const struct slice prefix = { "process/", 8 };
	struct execd_process *p;
	struct event e;

	/* The server tells a slow watcher that it left out events. */
	if (slice_equal(m->method, SLICE("session/lagged"))) {
		process_resume_all(c);
		return true;
	}
	if (m->method.len < prefix.len ||
	    memcmp(m->method.ptr, prefix.ptr, prefix.len) != 0)
		return false;
	p = find_process(c, json_get(m->params, "processId"));
	/* A malformed event leaves a gap in the numbers. The gap is read when
	 * the next event arrives. */
	if (p == NULL ||
	    !decode_event(&e, m->method.ptr, m->method.len, m->params))
		return true;
	process_enter(p);
	if (!take_event(p, &e))
		free(e.data);
	process_leave(p);
	return true;
}

/* --- What is missing ---------------------------------------------------- */

static void read_answered(void *arg, const struct execd_answer *a);

static void
release_held(struct execd_process *p)
{
	struct event *e;

	while (!p->reading && (e = TAILQ_FIRST(&p->held)) != NULL) {
		TAILQ_REMOVE(&p->held, e, link);
		p->held_bytes -= sizeof(*e) + e->len;
		if (!take_event(p, e))
			free(e->data);
		free(e);
		/* If another number is missing, take_event() starts to read it
		 * and the rest stays held. */
	}
}

/* Output that waits is asked for again and again; each request tells the server
 * what has come. */
static void
ask_after(struct execd_process *p, uint64_t seq)
{
	struct json_text t;

	p->reading = true;
	process_begin(p, &t);
	json_key_u64(&t.w, "afterSeq", seq);
	if (p->pulls)
		json_key_u64(&t.w, "waitMs", UINT64_MAX);
	calls_send(p, "process/read", &t, read_answered, p);
}

static void
go_on(struct execd_process *p)
{
	if (p->pulls && !p->ended)
		process_read(p);
	else
		release_held(p);
}

/* Counts the lost events: the numbers below `next` that are neither in chunks
 * nor used by the exit and close events. */
static uint64_t
count_lost(const struct execd_process *p, const struct json_value *result,
    uint64_t next)
{
	uint64_t known = 0, seq;
	const struct json_value *chunks = json_get(result, "chunks");

	for (const struct json_value *v = execd_json_first(chunks); v;
	     v = v->next)
		if (json_get(v, "seq") != NULL &&
		    json_to_u64(json_get(v, "seq"), &seq) == 0 && seq > p->last)
			known++;
	if (!p->exited && execd_json_bool(json_get(result, "exited"), false))
		known++;
	if (execd_json_bool(json_get(result, "closed"), false))
		known++;
	if (next <= p->last + 1 || known >= next - 1 - p->last)
		return 0;
	return next - 1 - p->last - known;
}

/* Events that the server no longer retains, and their place in the output. */
struct gap {
	uint64_t events;    /* 0: nothing is missing, or it was reported */
	uint64_t after;	    /* number before the gap; 0: unknown, first */
	uint64_t end_bytes; /* of output up to the gap's end; 0: unknown */
};

static struct gap
find_gap(const struct execd_process *p, const struct json_value *result,
    uint64_t next)
{
	const struct json_value *v = json_get(result, "gap");

	return (struct gap){ .events = count_lost(p, result, next),
		.after =
		    (uint64_t)execd_json_number(json_get(v, "afterSeq"), 0),
		.end_bytes =
		    (uint64_t)execd_json_number(json_get(v, "endBytes"), 0) };
}

static void
hand_out_gap(struct execd_process *p, struct gap *gap)
{
	uint64_t bytes = 0;

	if (gap->events == 0)
		return;
	if (gap->end_bytes > p->bytes) {
		bytes = gap->end_bytes - p->bytes;
		p->bytes = gap->end_bytes;
	}
	if (p->events.gap != NULL)
		p->events.gap(p->arg, gap->events, bytes);
	gap->events = 0;
}

static void
hand_out_chunks(
    struct execd_process *p, const struct json_value *chunks, struct gap *gap)
{
	for (const struct json_value *v = execd_json_first(chunks);
	     v && !p->ended; v = v->next) {
		struct event e;

		if (!decode_chunk(&e, v)) {
			process_fail(p, EXECD_CODE_LOST,
			    "the server's answer to process/read has an "
			    "invalid chunk");
			return;
		}
		if (e.seq > p->last && e.seq > gap->after)
			hand_out_gap(p, gap);
		if (e.seq > p->last)
			hand_out(p, &e);
		free(e.data);
	}
	if (!p->ended)
		hand_out_gap(p, gap);
}

/* Delivers the end that process/read reported, with the details if there are
 * any. */
static void
hand_out_end(struct execd_process *p, const struct json_value *details)
{
	struct event closed = { .kind = EVENT_CLOSED, .seq = p->last };
	struct execd_exit how = p->read_exit;

	if (details != NULL)
		decode_exit(&how, details);
	hand_out_exit(p, &how);
	if (!p->ended && p->read_closed)
		hand_out(p, &closed);
	if (!p->ended)
		go_on(p);
}

static void
details_answered(void *arg, const struct execd_answer *a)
{
	struct execd_process *p = arg;

	p->reading = false;
	if (p->ended)
		return;
	process_enter(p);
	hand_out_end(p, a->result);
	process_leave(p);
}

/* process/read does not say whether a timeout or a lack of memory ended the
 * process. */
static void
ask_details(struct execd_process *p)
{
	struct json_text t;

	p->reading = true; /* live events are held meanwhile */
	process_begin(p, &t);
	json_key_u64(&t.w, "timeoutMs", 0);
	calls_send(p, "process/wait", &t, details_answered, p);
}

static void
take_end(struct execd_process *p, const struct json_value *result)
{
	decode_exit(&p->read_exit, result);
	p->read_exit.details = NULL;
	p->read_closed = execd_json_bool(json_get(result, "closed"), false);
	if (!p->exited && execd_client_can(p->client, CAN_EXIT_DETAILS))
		ask_details(p);
	else
		hand_out_end(p, NULL);
}

static void
take_result(struct execd_process *p, const struct json_value *result)
{
	const struct json_value *number = json_get(result, "nextSeq");
	const struct json_value *chunks = json_get(result, "chunks");
	struct gap gap;
	uint64_t next;

	if (number == NULL || json_to_u64(number, &next) < 0 || next == 0) {
		process_fail(p, EXECD_CODE_LOST,
		    "the server's answer to process/read has no nextSeq");
		return;
	}
	/* The server sends what follows while this is handed out. If this is
	 * little, more gathers there meanwhile, and costs one answer. */
	if (p->pulls && chunks != NULL && chunks->count >= MANY_CHUNKS &&
	    !execd_json_bool(json_get(result, "exited"), false)) {
		ask_after(p, next - 1);
		wire_flush(p->client);
	}
	gap = find_gap(p, result, next);
	hand_out_chunks(p, chunks, &gap);
	if (!p->ended && next - 1 > p->last)
		p->last = next - 1;
	if (!p->ended && p->events.caught_up != NULL)
		p->events.caught_up(p->arg);
	if (p->ended)
		return;
	if (execd_json_bool(json_get(result, "exited"), false))
		take_end(p, result);
	else
		go_on(p);
}

static void
read_answered(void *arg, const struct execd_answer *a)
{
	struct execd_process *p = arg;

	p->reading = false;
	if (p->ended)
		return;
	process_enter(p);
	if (a->code == 0)
		take_result(p, a->result);
	else if (p->started)
		process_fail(p, EXECD_CODE_LOST, a->message);
	else if (p->client->state != EXECD_OVER)
		process_read(p); /* process/start is not answered yet */
	process_leave(p);
}

void
process_read(struct execd_process *p)
{
	/* A read that is under way is sent again after a resume. */
	if (!p->reading)
		ask_after(p, p->last);
}

/* --- All of them -------------------------------------------------------- */

void
process_resume_all(struct execd_client *c)
{
	struct execd_process *p;

	TAILQ_FOREACH (p, &c->processes, link)
		if (!p->ended)
			process_read(p);
}

void
process_fail_all(struct execd_client *c)
{
	struct execd_process *p, *next;

	TAILQ_FOREACH_SAFE (p, &c->processes, link, next)
		process_fail(p, EXECD_CODE_LOST, execd_client_error(c));
}
