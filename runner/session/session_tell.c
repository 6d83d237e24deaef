/* SPDX-License-Identifier: ISC */
/*
 * What the attached client is told about the session's processes, and how fast.
 */
#include "session.h"

#include <event2/event.h>

#include "audit.h"
#include "loop.h"
#include "recorder.h"
#include "waiter.h"
#include "watcher.h"

static const char *
event_method(const struct process_event *e)
{
	static const char *const names[] = { [EVENT_OUTPUT] = "process/output",
		[EVENT_EXITED] = "process/exited",
		[EVENT_CLOSED] = "process/closed" };

	return names[e->kind];
}

static void
write_output(struct json_writer *w, const struct process_event *e)
{
	json_key_cstring(w, "stream", stream_name(e->stream));
	json_key(w, "chunk");
	json_base64(w, e->data, e->len);
}

static void
write_exited(struct json_writer *w, const struct process *process)
{
	json_key_i64(w, "exitCode", process->state.exit_code);
	json_key_bool(w, "sandboxDenied", process->state.sandbox_denied);
	/* Members that only execd knows appear only when they apply. */
	if (process->timed_out)
		json_key_bool(w, "timedOut", true);
	if (process->timed_out && process->deadline_for == DEADLINE_COMMAND)
		json_key_cstring(
		    w, "killedBy", control_cause_name(END_COMMAND_DEADLINE));
}

void
session_tell(
    struct client *c, struct session_process *p, const struct process_event *e)
{
	struct json_writer w = channel_begin(&c->channel);

	rpc_begin_notification(&w, event_method(e));
	json_begin(&w, '{');
	json_key_string(&w, "processId", p->id, p->id_len);
	json_key_u64(&w, "seq", e->seq);
	if (e->kind == EVENT_OUTPUT)
		write_output(&w, e);
	else if (e->kind == EVENT_EXITED)
		write_exited(&w, &p->process);
	json_end(&w, '}');
	rpc_end_notification(&w);
	channel_send(&c->channel);
}

/*
 * While no client is attached, no events are sent; the output can be read
 * later.
 */
bool
session_is_told(const struct session_process *p)
{
	const struct session *s = p->session;

	return channel_is_open(&s->client.channel) &&
	       s->client.state != SESSION_NEW && !s->client.violated &&
	       !p->orphaned;
}

static void
tell_all(struct session_process *p, const struct process_event *e)
{
	if (session_is_told(p))
		session_tell(&p->session->client, p, e);
	watchers_tell(p, e);
	waiter_wake(p);
}

static void
on_output(struct process *process, uint64_t seq, enum stream stream,
    const void *data, size_t len)
{
	struct process_event e = { EVENT_OUTPUT, seq, stream, data, len };

	session_note_output(process->owner, data, len);
	tell_all(process->owner, &e);
}

static void
on_exited(struct process *process, uint64_t seq)
{
	struct process_event e = { .kind = EVENT_EXITED, .seq = seq };

	audit_exited(process->owner);
	tell_all(process->owner, &e);
}

static void
on_closed(struct process *process, uint64_t seq)
{
	struct process_event e = { .kind = EVENT_CLOSED, .seq = seq };

	tell_all(process->owner, &e);
	session_note_closed(process->owner);
}

void
session_note_output(struct session_process *p, const void *data, size_t len)
{
	rate_spend(&p->session->output_rate, len);
	recorder_output(p, data, len);
}

/* Pauses all reading until the rate permits more output. */
static bool
is_too_fast(struct session *s)
{
	struct timeval tv;

	if (s->output_rate.per_second == 0 ||
	    rate_permits(&s->output_rate, now_ms()))
		return false;
	tv = timeval_of_ms(rate_wait_ms(&s->output_rate));
	if (!event_pending(&s->rate_event, EV_TIMEOUT, NULL))
		loop_add(&s->rate_event, &tv);
	return true;
}

/* Connections that only watch never pause a command. */
bool
session_congested(struct process *process)
{
	struct session_process *p = process->owner;

	if (is_too_fast(p->session))
		return true;
	return session_is_told(p) &&
	       channel_congested(&p->session->client.channel);
}

const struct process_observer session_observer = {
	.output = on_output,
	.exited = on_exited,
	.closed = on_closed,
	.congested = session_congested,
};
