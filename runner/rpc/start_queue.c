/* SPDX-License-Identifier: ISC */
/* Starts that wait for what their patterns match. */
#include "start_queue.h"

#include <stdlib.h>
#include <string.h>

#include "helper.h"
#include "methods.h"
#include "pattern_scan.h"
#include "session.h"
#include "util.h"

struct held_start {
	STAILQ_ENTRY(held_start) link; /* start_queue.held */
	struct rpc_id id;
	bool starts;	  /* it starts the process of that id */
	bool opened;	  /* request.opened */
	char *process_id; /* owned; NULL: not known yet */
	size_t process_len, len;
	char text[];
};

void
start_queue_init(struct start_queue *q)
{
	STAILQ_INIT(&q->held);
	q->count = 0;
}

static bool
starts_process(const struct rpc_method *method)
{
	return method->method == method_process_start ||
	       method->method == method_command_exec;
}

struct slice
start_queue_process_of(const struct rpc_message *m)
{
	const struct json_value *v = json_get(m->params, "processId");

	return v != NULL && v->type == JSON_STRING ? v->text
						   : (struct slice){ "", 0 };
}

bool
start_queue_is_before(const struct session *s, const struct request *r,
    const struct rpc_method *method, const struct rpc_message *m)
{
	struct slice id = start_queue_process_of(m);
	struct held_start *h;

	if (STAILQ_EMPTY(&s->starting->held) || r->client != &s->client ||
	    method->family != FAMILY_EXEC)
		return false;
	if (starts_process(method))
		return true;
	STAILQ_FOREACH (h, &s->starting->held, link)
		if (h->process_id != NULL &&
		    slice_equal(
			id, (struct slice){ h->process_id, h->process_len }))
			return true;
	return false;
}

static void
free_held(struct held_start *h)
{
	rpc_id_clear(&h->id);
	free(h->process_id);
	free(h);
}

int
start_queue_hold(struct request *r, const struct rpc_method *method,
    const struct rpc_message *m, const char *text, size_t len)
{
	struct start_queue *q = r->session->starting;
	struct slice id = start_queue_process_of(m);
	struct held_start *h;

	if (q->count == REQUESTS_WAITING_MAX)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "at most %d requests may wait for a start",
		    REQUESTS_WAITING_MAX);
	h = xcalloc(1, sizeof(*h) + len);
	h->id = r->id;
	r->id = (struct rpc_id){ 0 };
	h->starts = starts_process(method);
	h->opened = r->opened;
	if (h->starts && id.len > 0) {
		h->process_id = xstrndup(id.ptr, id.len);
		h->process_len = id.len;
	}
	h->len = len;
	memcpy(h->text, text, len);
	STAILQ_INSERT_TAIL(&q->held, h, link);
	q->count++;
	r->session->held_bytes += len;
	r->session->client.waiting++;
	if (q->count == 1)
		pattern_scan_ask(r->session, SCAN_FOR_START, h->text, len);
	helper_pause_client(r->session);
	return RPC_PENDING;
}

/*
 * Returns true if the first request is answered or waits for something else;
 * then the next one is first. Returns false if it asked for a scan of its
 * patterns.
 */
static bool
go_on(struct session *s, const struct resolve_matches *found)
{
	struct start_queue *q = s->starting;
	struct held_start *h = STAILQ_FIRST(&q->held);
	struct request r = { .channel = &s->client.channel,
		.session = s,
		.client = &s->client,
		.id = h->id,
		.opened = h->opened };

	/* It is removed first, so that it does not have to wait for itself. */
	STAILQ_REMOVE_HEAD(&q->held, link);
	h->id = (struct rpc_id){ 0 };
	s->sandbox.known = found;
	methods_repeat(&r, h->text, h->len);
	s->sandbox.known = NULL;
	if (r.unscanned) {
		h->id = r.id;
		STAILQ_INSERT_HEAD(&q->held, h, link);
		pattern_scan_ask(s, SCAN_FOR_START, h->text, h->len);
		return false;
	}
	rpc_id_clear(&r.id);
	q->count--;
	s->held_bytes -= h->len;
	s->client.waiting--;
	free_held(h);
	return true;
}

void
start_queue_resume(struct session *s, const struct resolve_matches *found)
{
	while (!STAILQ_EMPTY(&s->starting->held) && go_on(s, found))
		found = NULL;
	helper_pause_client(s);
}

void
start_queue_clear(struct session *s)
{
	struct start_queue *q = s->starting;
	struct held_start *h;

	while ((h = STAILQ_FIRST(&q->held)) != NULL) {
		STAILQ_REMOVE_HEAD(&q->held, link);
		s->held_bytes -= h->len;
		free_held(h);
	}
	start_queue_init(q);
}
