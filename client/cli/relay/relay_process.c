/* SPDX-License-Identifier: ISC */
/*
 * The events of the client's processes. The library delivers each once and in
 * order, over any number of connections. They are numbered anew: a client waits
 * for ever for a number that is missing, and what process/read tells of the end
 * has none.
 */
#include <string.h>

#include "stdio_relay.h"

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

/* --- Events ------------------------------------------------------------- */

static void
begin_event(struct relay_process *p, const char *method, struct buf *b,
    struct json_writer *w)
{
	buf_init(b, SIZE_MAX / 2);
	json_writer_init(w, b);
	rpc_begin_notification(w, method);
	json_begin(w, '{');
	json_key_cstring(w, "processId", execd_process_id(p->handle));
	json_key_u64(w, "seq", ++p->seq);
}

static void
end_event(struct relay_process *p, struct buf *b, struct json_writer *w)
{
	json_end(w, '}');
	rpc_end_notification(w);
	relay_say(p->relay, b);
}

static void
on_output(void *arg, enum execd_stream stream, const void *data, size_t len)
{
	static const char *const names[] = { [EXECD_STDOUT] = "stdout",
		[EXECD_STDERR] = "stderr",
		[EXECD_TERMINAL] = "pty" };
	struct relay_process *p = arg;
	struct json_writer w;
	struct buf b;

	begin_event(p, "process/output", &b, &w);
	json_key_cstring(&w, "stream", names[stream]);
	json_key(&w, "chunk");
	json_base64(&w, data, len);
	end_event(p, &b, &w);
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
	struct json_writer w;
	struct buf b;

	begin_event(p, "process/exited", &b, &w);
	json_key_i64(&w, "exitCode", how->code);
	json_key_bool(&w, "sandboxDenied", how->sandbox_denied);
	if (how->details != NULL)
		for (const struct json_value *v = how->details->first; v;
		     v = v->next)
			if (!is_written(v))
				relay_member(&w, v);
	end_event(p, &b, &w);
}

static void
on_closed(void *arg)
{
	struct relay_process *p = arg;
	struct json_writer w;
	struct buf b;

	begin_event(p, "process/closed", &b, &w);
	end_event(p, &b, &w);
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

bool
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
