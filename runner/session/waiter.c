/* SPDX-License-Identifier: ISC */
/* Requests that wait for a process, and the answer to process/read. */
#include "waiter.h"

#include <event2/event.h>

#include "loop.h"
#include "params.h"
#include "report.h"
#include "request.h"
#include "session.h"

static void
write_chunk(const struct retention_chunk *chunk, void *arg)
{
	struct json_writer *w = arg;

	json_begin(w, '{');
	json_key_u64(w, "seq", chunk->seq);
	json_key_cstring(w, "stream", stream_name(chunk->stream));
	json_key(w, "chunk");
	json_base64(w, chunk->data, chunk->len);
	json_end(w, '}');
}

static void
write_gap(struct json_writer *w, const struct process_state *state)
{
	struct process_gap gap = process_state_gap(state);

	json_key(w, "gap");
	json_begin(w, '{');
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

	json_key(&w, "chunks");
	json_begin(&w, '[');
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
	if (state->exited)
		network_write_denied(&w, p);
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
	struct timeval tv = timeval_of_ms(wait_ms);
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
		loop_add(&w->timeout, &tv);
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
