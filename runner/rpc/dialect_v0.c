/* SPDX-License-Identifier: ISC */
/*
 * The first protocol version, exec-server.v0, beside the current one on the
 * same connection (doc/protocol.md section 16). The server names the processes,
 * nothing of them is retained, and they end with their connection.
 */
#include "audit.h"
#include "methods.h"
#include "session.h"

/* "session-4294967295" */
#define ID_MAX 32

/* --- what the client is told -------------------------------------------- */

static struct json_writer
begin_event(struct session_process *p, const char *method)
{
	struct json_writer w = channel_begin(&p->session->client.channel);

	rpc_begin_notification(&w, method);
	json_begin(&w, '{');
	json_key_string(&w, "sessionId", p->id, p->id_len);
	return w;
}

static void
end_event(struct session_process *p, struct json_writer *w)
{
	json_end(w, '}');
	rpc_end_notification(w);
	channel_send(&p->session->client.channel);
}

/* A terminal has one stream, and this dialect has no name for it. */
static void
on_output(struct process *process, uint64_t seq, enum stream stream,
    const void *data, size_t len)
{
	struct session_process *p = process->owner;
	struct json_writer w;

	session_note_output(p, data, len);
	if (!session_is_told(p))
		return;
	w = begin_event(p, "command/exec/outputDelta");
	json_key_cstring(
	    &w, "stream", stream == STREAM_STDERR ? "stderr" : "stdout");
	json_key_base64(&w, "chunk", data, len);
	end_event(p, &w);
}

static void
on_exited(struct process *process, uint64_t seq)
{
	struct session_process *p = process->owner;
	struct json_writer w;

	audit_exited(p);
	if (!session_is_told(p))
		return;
	w = begin_event(p, "command/exec/exited");
	json_key_i64(&w, "exitCode", process->state.exit_code);
	end_event(p, &w);
}

static void
on_closed(struct process *process, uint64_t seq)
{
	session_note_closed(process->owner);
}

static const struct process_observer observer = {
	.output = on_output,
	.exited = on_exited,
	.closed = on_closed,
	.congested = session_congested,
};

/* --- methods ------------------------------------------------------------ */

static int
reply_bool(
    struct channel *ch, const struct rpc_id *id, const char *key, bool value)
{
	struct json_writer w = reply_begin(ch, id);

	json_key_bool(&w, key, value);
	reply_end(ch, &w);
	return 0;
}

/* Makes an id that no process of either dialect has. */
static struct slice
make_id(struct session *s, char text[ID_MAX])
{
	struct slice id = { text, 0 };

	do
		id.len = (size_t)snprintf(
		    text, ID_MAX, "session-%u", ++s->v0_starts);
	while (session_find(s, id) != NULL || session_find_v0(s, id) != NULL);
	return id;
}

int
method_command_exec(struct request *r, const union method_params *params)
{
	struct process_start_params p = params->process_start;
	struct session_process *sp;
	struct json_writer w;
	char id[ID_MAX];

	p.process_id = r->start != NULL ? start_process_id(r->start)
					: make_id(r->session, id);
	sp = method_process_begin(r, &p);
	if (sp == NULL)
		return 0;
	sp->v0 = true;
	sp->process.observer = &observer;
	process_state_keep(&sp->process.state, 0, 0);
	w = reply_begin(r->channel, &r->id);
	json_key_string(&w, "sessionId", sp->id, sp->id_len);
	reply_end(r->channel, &w);
	return 0;
}

static int
reply_written(struct channel *ch, const struct rpc_id *id, struct slice process,
    bool accepted)
{
	return accepted ? reply_bool(ch, id, "accepted", true)
			: reply_error(ch, id, RPC_MALFORMED,
			      "stdin is closed for session %.*s",
			      (int)process.len, process.ptr);
}

int
method_command_exec_write(struct request *r, const union method_params *params)
{
	const struct process_write_params *p = &params->process_write;
	struct session_process *sp = session_find_v0(r->session, p->process_id);

	if (sp == NULL)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "unknown session id %.*s", (int)p->process_id.len,
		    p->process_id.ptr);
	return method_write(r, sp, SLICE(""), p->chunk, reply_written);
}

int
method_command_exec_terminate(
    struct request *r, const union method_params *params)
{
	struct session_process *sp =
	    session_find_v0(r->session, params->process_id.process_id);

	return reply_bool(r->channel, &r->id, "running",
	    sp != NULL && process_terminate(&sp->process));
}
