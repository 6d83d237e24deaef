/* SPDX-License-Identifier: ISC */
/*
 * The client's side of execctl relay: lines in, lines out, and the end.
 */
#include "stdio_relay.h"

#define LINE_MAX_BYTES (64u << 20) /* doc/protocol.md section 1.4 */
#define READ_BYTES     (128u << 10)
/* Beyond these nothing more is read from where it comes. */
#define TO_SERVER_BYTES (1u << 20)
#define TO_CLIENT_BYTES (1u << 20)
#define UNANSWERED_MAX	1024
#define LAST_ANSWERS_MS 10000 /* from the end of input */

void
relay_finish(struct relay *r, int code)
{
	if (r->over)
		return;
	r->over = true;
	r->code = code;
}

/* --- The client --------------------------------------------------------- */

/* Looks at how much is queued in both directions, and reads or waits. */
static void
relay_balance(struct relay *r)
{
	struct execd_client *c = r->ctl->client;
	bool read = !r->eof && !r->over && r->unanswered < UNANSWERED_MAX &&
		    (c == NULL || execd_client_queued(c) < TO_SERVER_BYTES);

	source_set(r->ctl, &r->in, STDIN_FILENO, read ? POLLIN : 0);
	if (c != NULL)
		execd_client_pause(c, output_queued(&r->out) > TO_CLIENT_BYTES);
}

static void
written(void *arg)
{
	struct relay *r = arg;

	if (r->out.failed < 0 && !r->over)
		relay_finish(
		    r, execctl_fail(r->ctl, EXIT_CTL_REFUSED,
			   "standard output: %s", strerror(-r->out.failed)));
	relay_balance(r);
}

void
relay_say(struct relay *r, struct buf *b)
{
	if (r->ctl->client == NULL || !r->over) {
		buf_puts(b, "\n");
		output_put(&r->out, b->data, b->len);
	}
	buf_clear(b);
}

void
relay_say_error(
    struct relay *r, const struct rpc_id *id, int code, const char *message)
{
	struct json_text t;

	json_text_init(&t, SIZE_MAX / 2);
	rpc_write_error(&t.w, id, code, message, strlen(message));
	relay_say(r, &t.buf);
}

/* --- initialize --------------------------------------------------------- */

/* The relay is a client of its own, which asks for nothing when it connects. */
static void
refuse_keep(struct json_writer *w)
{
	json_key_begin(w, "sessionKeep", '{');
	json_key_begin(w, "error", '{');
	json_key_i64(w, "code", RPC_MALFORMED);
	json_key_cstring(w, "message",
	    "execctl relay: ask with session/keep, and not with initialize");
	json_end(w, '}');
	json_end(w, '}');
}

static void
answer_initialize(struct relay *r, const struct rpc_id *id, bool keep)
{
	const struct execd_client *c = r->ctl->client;
	struct json_text t;

	json_text_init(&t, SIZE_MAX / 2);
	rpc_begin_result(&t.w, id);
	json_begin(&t.w, '{');
	json_key_cstring(&t.w, "sessionId", execd_client_session(c));
	json_key(&t.w, "environmentInfo");
	json_copy(&t.w, execd_client_info(c));
	if (keep)
		refuse_keep(&t.w);
	json_end(&t.w, '}');
	rpc_end_result(&t.w);
	relay_say(r, &t.buf);
	r->ready = true;
}

/* Connects as the client wants. A server that cannot be reached ends the relay:
 * the client would start it again. */
static void
initialize(struct relay *r, const struct rpc_message *m)
{
	const struct json_value *resume =
	    json_get(m->params, "resumeSessionId");
	const struct json_value *name = json_get(m->params, "clientName");
	char session[128], client_name[256];
	struct rpc_id id;
	int code;

	rpc_id_copy(&id, m->id);
	if (r->ready) {
		relay_say_error(r, &id, RPC_MALFORMED,
		    "initialize may only be sent once per connection");
		rpc_id_clear(&id);
		return;
	}
	value_string(resume, session, sizeof(session));
	value_string(name, client_name, sizeof(client_name));
	r->ctl->client_name = client_name[0] ? client_name : NULL;
	r->ctl->steal = execd_json_bool(json_get(m->params, "takeOver"), false);
	code = execctl_connect(r->ctl, session[0] ? session : NULL, false);
	r->ctl->client_name = NULL;
	if (code == 0) {
		answer_initialize(
		    r, &id, json_get(m->params, "sessionKeep") != NULL);
	} else {
		relay_say_error(r, &id, RPC_INTERNAL,
		    r->ctl->client ? execd_client_error(r->ctl->client)
				   : "execctl relay: no server");
		relay_finish(r, code);
	}
	rpc_id_clear(&id);
}

/* --- Messages ----------------------------------------------------------- */

static void
refuse_message(struct relay *r, const char *detail)
{
	_cleanup_free_ char *text = xasprintf(
	    "failed to parse JSON-RPC message from exec-server stdio: %s",
	    detail);

	relay_say_error(r, NULL, RPC_MALFORMED, text);
}

/* Returns false if the server asked nothing under that number. */
static bool
take_answer(
    struct relay *r, const struct rpc_message *m, const char *text, size_t len)
{
	uint64_t id;

	if (!r->ready || json_to_u64(m->id, &id) < 0 || id == 0 ||
	    id > r->asked)
		return false;
	execd_client_answer(r->ctl->client, text, len);
	return true;
}

/* The client may send one notification, and answers to what it was asked. */
static void
take_other(
    struct relay *r, const struct rpc_message *m, const char *text, size_t len)
{
	if (r->ready && m->kind == RPC_KIND_NOTIFICATION &&
	    slice_equal(m->method, SLICE("initialized")))
		return;
	if (m->kind == RPC_KIND_RESPONSE && take_answer(r, m, text, len))
		return;
	relay_finish(r,
	    execctl_fail(r->ctl, EXIT_CTL_REFUSED,
		"the client sent %s, which no exec-server takes%s",
		m->kind == RPC_KIND_RESPONSE ? "an answer" : "a notification",
		r->ready ? "" : " before initialize"));
}

static bool
is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (strchr(" \t\r", text[i]) == NULL || text[i] == '\0')
			return false;
	return true;
}

static void
take_line(struct relay *r, const char *text, size_t len)
{
	struct rpc_message m;

	if (is_blank(text, len))
		return;
	if (rpc_parse(&m, text, len) < 0)
		refuse_message(r, m.doc.error);
	else if (m.kind != RPC_KIND_REQUEST)
		take_other(r, &m, text, len);
	else if (slice_equal(m.method, SLICE("initialize")))
		initialize(r, &m);
	else
		relay_request(r, &m);
	rpc_message_clear(&m);
}

/* Takes the whole lines that were read. */
static void
take_lines(struct relay *r)
{
	size_t at = 0;

	while (!r->over) {
		const uint8_t *from = r->line.data + at;
		size_t len = r->line.len - at;
		const uint8_t *end =
		    len > r->searched
			? memchr(from + r->searched, '\n', len - r->searched)
			: NULL;

		if (end == NULL) {
			r->searched = len;
			break;
		}
		take_line(r, (const char *)from, (size_t)(end - from));
		at += (size_t)(end - from) + 1;
		r->searched = 0;
	}
	buf_consume(&r->line, at);
}

static void
input_ended(struct relay *r)
{
	r->eof = true;
	if (r->line.len > 0)
		execctl_say(
		    "the last line has no newline, so it was not taken");
}

static void
input_ready(void *arg)
{
	struct relay *r = arg;
	uint8_t *at = buf_reserve(&r->line, READ_BYTES);
	ssize_t n;

	if (at == NULL) {
		relay_finish(r, execctl_fail(r->ctl, EXIT_CTL_REFUSED,
				    "the client sent a line of more than "
				    "64 MiB"));
		return;
	}
	n = read(STDIN_FILENO, at, READ_BYTES);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0) {
		buf_commit(&r->line, (size_t)n);
		take_lines(r);
	} else {
		input_ended(r);
	}
	relay_balance(r);
}

/* --- The end ------------------------------------------------------------ */

static void
signalled(void *arg)
{
	struct relay *r = arg;
	int signal = signals_take(&r->signals);

	if (signal != 0)
		relay_finish(r, 128 + signal);
}

static void
late(void *arg)
{
	struct relay *r = arg;

	relay_finish(r, execctl_fail(r->ctl, EXIT_CTL_REFUSED,
			    "%u requests were not answered within %d s after "
			    "the end of input",
			    r->unanswered, LAST_ANSWERS_MS / 1000));
}

static void
follow(struct relay *r)
{
	struct timer timer = { .fire = late, .arg = r };
	struct execctl *ctl = r->ctl;

	while (!r->over) {
		bool lost;

		if (r->eof && (r->unanswered == 0 || ctl->client == NULL)) {
			relay_finish(r, 0);
			break;
		}
		if (r->eof && !timer.added)
			timer_set(ctl, &timer, LAST_ANSWERS_MS);
		if (loop_once(ctl) == -ENOTCONN)
			relay_finish(r, execctl_over(ctl));
		if (ctl->client == NULL)
			continue;
		lost = execd_client_lost_ms(ctl->client) > 0;
		if (lost && !r->was_lost)
			relay_lost(r);
		r->was_lost = lost;
		relay_balance(r);
	}
	timer_remove(ctl, &timer);
}

/* The client of the library answers everything before it is freed. Nothing of
 * that is said any more. */
static void
clear(struct relay *r)
{
	source_remove(r->ctl, &r->in);
	source_remove(r->ctl, &r->signals);
	if (r->out.failed == 0 && r->code < 128)
		output_drain(&r->out);
	output_clear(&r->out);
	close(r->signals.fd);
	relay_forget_processes(r);
	execctl_clear(r->ctl);
	relay_forget(r);
	buf_clear(&r->line);
}

int
relay_run(struct execctl *ctl)
{
	struct relay r = { .ctl = ctl };
	sigset_t set = signals_that_end();
	int code;

	TAILQ_INIT(&r.processes);
	TAILQ_INIT(&r.streams);
	buf_init(&r.line, LINE_MAX_BYTES + READ_BYTES);
	output_init(&r.out, ctl, STDOUT_FILENO, written, &r);
	r.in.ready = input_ready;
	r.in.arg = &r;
	ctl->on_notification = relay_notified;
	ctl->on_request = relay_asked;
	ctl->notification_arg = &r;
	r.signals.ready = signalled;
	r.signals.arg = &r;
	code = signals_watch(ctl, &r.signals, &set);
	if (code != 0)
		return code;
	relay_balance(&r);
	follow(&r);
	clear(&r);
	return r.code;
}
