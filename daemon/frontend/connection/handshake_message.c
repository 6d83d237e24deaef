/* SPDX-License-Identifier: ISC */
/*
 * Messages before initialize is answered, and that answer (doc/protocol.md
 * section 5). This is the only place in the front-end that parses JSON.
 */
#include "handshake.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker_request.h"
#include "frontend.h"
#include "handoff.h"
#include "json_scan.h"
#include "log.h"
#include "metrics.h"
#include "params.h"
#include "relay.h"
#include "util.h"

/* All clients share the front-end, so the size of what it parses is limited. */
#define PARSED_MAX_BYTES (256u << 10)

/* Buffer of the session channel, in each direction. */
#define CHANNEL_SEND_BYTES (208 << 10)

struct early_method {
	const char *name;
	enum method_family family;
	params_fn *params;
};

static const struct early_method early_methods[] = {
#define METHOD(name, wire, family, when)                                       \
	{ wire, FAMILY_##family, params_##name },
#define FILE_METHOD(name, wire, family, use)                                   \
	{ wire, FAMILY_##family, params_##name },
#define HTTP_METHOD(name, wire) { wire, FAMILY_HTTP, params_##name },
#include "methods.def"
#undef METHOD
#undef FILE_METHOD
#undef HTTP_METHOD
};

static const struct early_method *
find_method(struct slice name)
{
	for (size_t i = 0; i < nitems(early_methods); i++)
		if (strlen(early_methods[i].name) == name.len &&
		    !memcmp(early_methods[i].name, name.ptr, name.len))
			return &early_methods[i];
	return NULL;
}

static void
answer_error(struct connection *c, const struct rpc_id *id, int code,
    const char *before, struct slice text, const char *after)
{
	struct buf message, b;
	struct json_writer w;

	buf_init(&message, text.len + 512);
	buf_puts(&message, before);
	buf_put(&message, text.ptr, text.len);
	buf_puts(&message, after);
	/* An escape makes six bytes of one. An id may be as long as its
	 * message. */
	buf_init(&b, message.len * 6 + (id ? id->len : 0) + 64);
	json_writer_init(&w, &b);
	rpc_write_error(&w, id, code, (char *)message.data, message.len);
	connection_send(c, b.data, b.len);
	buf_clear(&message);
	buf_clear(&b);
}

static struct slice
slice_of(const char *s)
{
	return (struct slice){ s, strlen(s) };
}

static void
answer_malformed(struct connection *c, const char *detail)
{
	_cleanup_free_ char *before = xasprintf("failed to parse %sJSON-RPC "
						"message from exec-server %s: ",
	    connection_is_stdio(c) ? "" : "websocket ", c->peer);

	answer_error(c, NULL, RPC_MALFORMED, before, slice_of(detail), "");
}

/* No other message is handled until initialize is answered. The session is
 * asked for at the end of this turn, when the bytes after initialize are
 * known. */
static void
take_initialize(struct connection *c, struct rpc_id *id,
    const struct initialize_params *p, const char *text, size_t len)
{
	struct slice want =
	    p->watch ? p->watch_session_id : p->resume_session_id;
	bool named = p->watch || p->resume;
	struct start start = { .request = BROKER_REQ_OPEN,
		.asked_ms = now_ms() };

	if (named && (want.len >= sizeof(start.wanted) ||
			 memchr(want.ptr, '\0', want.len) != NULL)) {
		answer_error(
		    c, id, RPC_MALFORMED, "unknown session id ", want, "");
		return;
	}
	if (named) {
		memcpy(start.wanted, want.ptr, want.len);
		start.request = p->watch ? BROKER_REQ_WATCH : BROKER_REQ_RESUME;
	}
	buf_init(&start.initialize, SIZE_MAX);
	buf_put(&start.initialize, text, len);
	start.id = *id;
	*id = (struct rpc_id){ 0 };
	connection_to_attaching(c, &start);
	connection_read_client(c, false);
}

static void
take_request_message(struct connection *c, struct rpc_message *m,
    struct rpc_id *id, const char *text, size_t len)
{
	const struct early_method *method = find_method(m->method);
	char error[ARGS_ERROR_MAX];
	union method_params params;

	if (method == NULL)
		answer_error(c, id, RPC_UNKNOWN_METHOD,
		    "exec-server stub does "
		    "not implement `",
		    m->method, "` yet");
	else if (method->params(m, &params, error) < 0)
		answer_error(
		    c, id, RPC_INVALID_PARAMS, "", slice_of(error), "");
	else if (method->family == FAMILY_INITIALIZE)
		take_initialize(c, id, &params.initialize, text, len);
	else
		answer_error(c, id, RPC_MALFORMED,
		    "client must call initialize "
		    "before using ",
		    slice_of(method_family_name(method->family)), " methods");
}

void
handshake_message(struct connection *c, char *text, size_t len)
{
	struct rpc_id id = { 0 };
	struct rpc_message m;

	if (json_scan_exceeds(text, len, PARSED_MAX_BYTES)) {
		answer_malformed(c, "too long before initialize");
		return;
	}
	if (rpc_parse(&m, text, len) < 0) {
		answer_malformed(c, m.doc.error);
	} else if (m.kind == RPC_KIND_REQUEST) {
		rpc_id_copy(&id, m.id);
		take_request_message(c, &m, &id, text, len);
		rpc_id_clear(&id);
	} else {
		connection_close(
		    c, WEBSOCKET_CLOSE_POLICY, "initialize comes first");
	}
	rpc_message_clear(&m);
}

/* --- the session -------------------------------------------------------- */

/* Answers that the session is unknown; if the operator ended it, with the
 * reason. */
static void
answer_unknown(struct connection *c, const struct rpc_id *request,
    struct slice id, const char *reason)
{
	_cleanup_free_ char *why =
	    xasprintf("%s%s", reason[0] ? ": " : "", reason);

	answer_error(c, request, RPC_MALFORMED, "unknown session id ", id, why);
}

/* Answers why there is no session. The message contains the session id as the
 * client wrote it. */
static void
answer_refused(struct connection *c, const struct start *start,
    const struct control_session *s)
{
	struct rpc_message m;
	union method_params p = { 0 };
	char error[ARGS_ERROR_MAX];
	struct slice id;

	if (rpc_parse(
		&m, (char *)start->initialize.data, start->initialize.len) == 0)
		params_initialize(&m, &p, error);
	id = p.initialize.watch ? p.initialize.watch_session_id
				: p.initialize.resume_session_id;
	if (s->result == SESSION_UNKNOWN)
		answer_unknown(c, &start->id, id, s->reason);
	else if (s->result == SESSION_ATTACHED)
		answer_error(c, &start->id, RPC_ATTACHED, "session ", id,
		    " is already attached to another connection");
	else if (s->result == SESSION_SILENT) /* clients retry this code */
		answer_error(c, &start->id, RPC_ATTACHED, "session ", id,
		    " has not answered yet since execd began anew");
	else
		answer_error(
		    c, &start->id, RPC_INTERNAL, "", slice_of(s->reason), "");
	rpc_message_clear(&m);
}

static void
refuse_session(struct connection *c, const struct control_session *s)
{
	struct start start;

	metrics.sessions_failed++;
	connection_unattach(c);
	handoff_refused(c);
	start = connection_back_to_open(c);
	answer_refused(c, &start, s);
	start_clear(&start);
}

void
handshake_refused(struct connection *c, const struct control_session *s)
{
	if (c->state != CONN_STARTING)
		return; /* the client left meanwhile */
	refuse_session(c, s);
	handoff_return(c);
	relay_take_kept(c);
}

static void
refuse_channel(struct connection *c, int err)
{
	struct control_session s = { .result = SESSION_FAILED };

	log_error(err, "connection %u: session channel", c->number);
	snprintf(
	    s.reason, sizeof(s.reason), "session channel: %s", strerror(-err));
	refuse_session(c, &s);
	connection_close(c, WEBSOCKET_CLOSE_INTERNAL, s.reason);
}

/* Makes room for several messages of 64 KiB in one turn. */
static void
widen(int fd)
{
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ CHANNEL_SEND_BYTES },
	    sizeof(int));
}

void
handshake_attach(struct connection *c)
{
	int theirs = connection_attach(c), err;

	connection_to_starting(c);
	if (theirs < 0) {
		refuse_channel(c, theirs);
		return;
	}
	if (!handoff_begin(c)) {
		widen(c->channel.fd);
		widen(theirs);
		relay_forward(
		    c, c->start.initialize.data, c->start.initialize.len);
	}
	err = broker_ask_session(c, theirs);
	close(theirs);
	if (err < 0)
		refuse_channel(c, err);
}

void
handshake_started(struct connection *c)
{
	bool opened = c->start.request == BROKER_REQ_OPEN;

	metrics.sessions_opened += opened;
	metrics.sessions_resumed += !opened;
	metrics_initialized((uint64_t)(now_ms() - c->start.asked_ms) * 1000);
	connection_to_attached(c);
	/* A runner pings its client itself. A client that was reclaimed or has
	 * hung up keeps the timer that it has. */
	if (!handoff_waits(c))
		connection_timer(c, connection_is_stdio(c) || c->handoff != NULL
					? 0
					: config.ping_interval_ms);
}
