/*
 * Before a session: HTTP upgrade, authentication, and the messages that come
 * before initialize has an answer (PROTOCOL.md sections 1.2, 1.5, 2, 5). The
 * only place of the front-end that reads JSON.
 */
#include "handshake.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>

#include "admission.h"
#include "frontend.h"
#include "http.h"
#include "log.h"
#include "log_limit.h"
#include "metrics.h"
#include "monitor_client.h"
#include "params.h"
#include "pump.h"
#include "util.h"

#define REPLY_MAX (64u << 10)

_Static_assert(HTTP_HEAD_MAX <= CONTROL_CREDENTIAL_MAX,
    "a token that a request holds could not be passed on");

/* --- TLS ---------------------------------------------------------------- */

/* Bytes that nobody read would make close(2) a reset, and the alert that says
 * why is lost with it: what still comes is read, as it is, and dropped. */
static void
leave_tls(struct connection *c)
{
	tls_free(c->tls);
	c->tls = NULL;
	connection_finish(c);
}

void
handshake_tls(struct connection *c)
{
	bool wants_write = false;
	const char *why;
	int err = tls_handshake(c->tls, &wants_write, &why);

	if (err == -EAGAIN) {
		if (wants_write)
			connection_await_client(c);
		return;
	}
	if (err < 0) {
		if (log_permits(c->peer, "TLS"))
			log_info("connection %u: %s: TLS: %s", c->number,
			    c->peer, why);
		metrics.tls_failed++;
		if (err == -EACCES)
			monitor_refused(c, why);
		if (err != -EIO) /* that was not the client's fault */
			connection_penalise(c, err == -EACCES
						   ? OFFENCE_AUTHENTICATION
						   : OFFENCE_PROTOCOL);
		leave_tls(c);
		return;
	}
	c->state = CONN_HTTP;
	pump_read_client(c);
}

/* --- HTTP --------------------------------------------------------------- */

static void
send_reply(struct connection *c, const struct http_reply *reply, bool head)
{
	struct iovec iov;
	struct buf b;

	buf_init(&b, REPLY_MAX);
	http_write_reply(&b, reply, head);
	iov = (struct iovec){ b.data, b.len };
	connection_write(c, &iov, 1);
	buf_clear(&b);
	connection_finish(c);
}

static void
ask_for_grant(struct connection *c, const struct http_request *r)
{
	enum credential_kind kind = CREDENTIAL_NONE;
	struct slice token = { "", 0 };

	if (r != NULL && r->has_authorization)
		kind = http_bearer(r->authorization, &token) == 0
			   ? CREDENTIAL_BEARER
			   : CREDENTIAL_INVALID;
	c->state = CONN_AUTHENTICATING;
	c->awaiting = true;
	connection_read_client(c, false);
	monitor_authenticate(c, kind, token);
}

/* What the operator asks, on a listener that is his alone. */
static bool
answer_operator(struct connection *c, const struct http_request *r)
{
	struct http_reply reply = { 200, "ok\n", HTTP_TEXT_PLAIN };

	if (!c->operate || r->origin || r->method == HTTP_OTHER)
		return false;
	if (slice_equal(r->path, SLICE("/metrics"))) {
		c->state = CONN_OPERATING;
		c->head_only = r->method == HTTP_HEAD;
		connection_read_client(c, false);
		monitor_ask_metrics(c);
		return true;
	}
	if (!slice_equal(r->path, SLICE("/healthz")))
		return false;
	if (frontend_draining)
		reply =
		    (struct http_reply){ 503, "stopping\n", HTTP_TEXT_PLAIN };
	send_reply(c, &reply, r->method == HTTP_HEAD);
	return true;
}

void
handshake_metrics(struct connection *c, const struct control_metrics *m)
{
	struct http_reply reply = { 200, "", HTTP_TEXT_METRICS };
	struct buf text;

	buf_init(&text, REPLY_MAX / 2);
	metrics_write(&text, connection_count());
	metrics_write_monitor(&text, m);
	buf_put_u8(&text, '\0');
	reply.body = (char *)text.data;
	send_reply(c, &reply, c->head_only);
	buf_clear(&text);
}

static void
take_request(struct connection *c, const struct http_request *r, size_t len)
{
	static const struct http_reply draining = { 503, "", "" };
	struct http_reply reply = http_check(r);

	if (answer_operator(c, r))
		return;
	/* /readyz of a server that takes no more work. */
	if (reply.status == 200 && frontend_draining)
		reply = draining;
	if (reply.status != 101) {
		send_reply(c, &reply, r->method == HTTP_HEAD);
		return;
	}
	/* The answer is ready before the credential is passed on. */
	buf_init(&c->message, config.max_message_bytes);
	http_write_upgrade(&c->message, r->key);
	ask_for_grant(c, r);
	explicit_bzero(c->head.data, len);
	buf_consume(&c->head, len);
}

void
handshake_http(struct connection *c, const char *data, size_t len)
{
	static const struct http_reply bad = { 400, "", "" };
	static const struct http_reply large = { 431, "", "" };
	struct http_request r;
	ssize_t n;

	buf_put(&c->head, data, len);
	n = c->head.failed ? -E2BIG
			   : http_parse(&r, (char *)c->head.data, c->head.len);
	if (n > 0)
		take_request(c, &r, (size_t)n);
	if (n >= 0)
		return;
	if (log_permits(c->peer, "HTTP"))
		log_info("connection %u: %s: %s", c->number, c->peer,
		    n == -E2BIG ? "its request is too long" : "not HTTP");
	metrics.http_failed++;
	connection_penalise(c, OFFENCE_PROTOCOL);
	send_reply(c, n == -E2BIG ? &large : &bad, false);
}

void
handshake_stdio(struct connection *c)
{
	ask_for_grant(c, NULL);
}

static void
refuse(struct connection *c, uint8_t verdict)
{
	const char *text = control_verdict_name((enum verdict)verdict);
	struct http_reply reply = { 401, text, HTTP_TEXT_PLAIN };

	if (verdict != VERDICT_BUSY)
		connection_penalise(c, OFFENCE_AUTHENTICATION);
	else
		reply = (struct http_reply){ 503, text,
			HTTP_TEXT_PLAIN "retry-after: 1\r\n" };
	send_reply(c, &reply, false);
}

void
handshake_verdict(struct connection *c, const struct control_verdict *v)
{
	struct iovec iov = { c->message.data, c->message.len };

	c->awaiting = false;
	c->granted = v->verdict == VERDICT_GRANTED;
	metrics.granted += c->granted;
	if (v->verdict < VERDICTS)
		metrics.verdicts[v->verdict]++;
	metrics.denied += !c->granted;
	if (c->state != CONN_AUTHENTICATING) {
		connection_client_gone(c); /* it left meanwhile */
		return;
	}
	if (!c->granted) {
		refuse(c, v->verdict);
		return;
	}
	admission_leave(c);
	memcpy(c->grant, v->grant, sizeof(c->grant));
	c->state = CONN_OPEN;
	if (!c->stdio && !connection_write(c, &iov, 1))
		return;
	buf_clear(&c->message);
	pump_take_kept(c);
}

/* --- messages before a session ------------------------------------------ */

struct early_method {
	const char *name;
	enum method_family family;
	params_fn *params;
};

static const struct early_method early_methods[] = {
#define METHOD(name, wire, family, when)                                       \
	{ wire, FAMILY_##family, params_##name },
#define FILE_METHOD(name, wire) { wire, FAMILY_FILESYSTEM, params_##name },
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
	/* Escapes make a byte six; an id may be as long as its message. */
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
	    c->stdio ? "" : "websocket ", c->peer);

	answer_error(c, NULL, RPC_MALFORMED, before, slice_of(detail), "");
}

/* Asks for the session; until the answer no other message is handled. */
static void
take_initialize(struct connection *c, struct rpc_id *id,
    const struct initialize_params *p, const char *text, size_t len)
{
	char wanted[CONTROL_SESSION_ID_MAX];
	struct slice want =
	    p->watch ? p->watch_session_id : p->resume_session_id;
	bool named = p->watch || p->resume;

	if (named && (want.len >= sizeof(wanted) ||
			 memchr(want.ptr, '\0', want.len) != NULL)) {
		answer_error(
		    c, id, RPC_MALFORMED, "unknown session id ", want, "");
		return;
	}
	buf_init(&c->initialize, len);
	buf_put(&c->initialize, text, len);
	c->initialize_id = *id;
	*id = (struct rpc_id){ 0 };
	c->state = CONN_ATTACHING;
	c->asked_ms = now_ms();
	c->awaiting = true;
	connection_read_client(c, false);
	c->resuming = named;
	if (!named) {
		monitor_open(c);
		return;
	}
	memcpy(wanted, want.ptr, want.len);
	wanted[want.len] = '\0';
	if (p->watch)
		monitor_watch_session(c, wanted);
	else
		monitor_resume(c, wanted);
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

/* The id as the client named it: it is still in the message. */
static void
answer_refused(struct connection *c, const struct control_session *s)
{
	struct rpc_message m;
	union method_params p = { 0 };
	char error[ARGS_ERROR_MAX];
	struct slice id;

	if (rpc_parse(&m, (char *)c->initialize.data, c->initialize.len) == 0)
		params_initialize(&m, &p, error);
	id = p.initialize.watch ? p.initialize.watch_session_id
				: p.initialize.resume_session_id;
	if (s->result == SESSION_UNKNOWN)
		answer_error(c, &c->initialize_id, RPC_MALFORMED,
		    "unknown session id ", id, "");
	else if (s->result == SESSION_ATTACHED)
		answer_error(c, &c->initialize_id, RPC_ATTACHED, "session ", id,
		    " is already attached to another connection");
	else
		answer_error(c, &c->initialize_id, RPC_INTERNAL, "",
		    slice_of(s->reason), "");
	rpc_message_clear(&m);
}

void
handshake_session(
    struct connection *c, const struct control_session *s, int channel_fd)
{
	c->awaiting = false;
	if (c->state != CONN_ATTACHING) {
		if (channel_fd >= 0)
			connection_attach(c, channel_fd);
		c->state = CONN_GONE; /* it left meanwhile */
		connection_client_gone(c);
		return;
	}
	metrics.sessions_failed += channel_fd < 0;
	metrics.sessions_resumed += channel_fd >= 0 && c->resuming;
	metrics.sessions_opened += channel_fd >= 0 && !c->resuming;
	if (channel_fd >= 0) {
		connection_attach(c, channel_fd);
		pump_forward(c, c->initialize.data, c->initialize.len);
	} else {
		c->state = CONN_OPEN;
		answer_refused(c, s);
		rpc_id_clear(&c->initialize_id);
	}
	buf_clear(&c->initialize);
	pump_take_kept(c);
}

void
handshake_started(struct connection *c)
{
	c->state = CONN_ATTACHED;
	metrics_initialized((uint64_t)(now_ms() - c->asked_ms) * 1000);
	rpc_id_clear(&c->initialize_id);
	connection_timer(c, c->stdio ? 0 : config.ping_interval_ms);
}
