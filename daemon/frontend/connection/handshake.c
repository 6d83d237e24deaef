/* SPDX-License-Identifier: ISC */
/*
 * The phases before a session: TLS, HTTP upgrade, authentication and
 * initialize (doc/protocol.md sections 1.2, 1.5 and 2).
 */
#include "base.h"
#include "connection.h"

#include "admission.h"
#include "broker_request.h"
#include "frontend.h"
#include "http.h"
#include "json_scan.h"
#include "log_limit.h"
#include "metrics.h"
#include "params.h"

#define REPLY_MAX (128u << 10)

/* Seconds. A program that does not answer is replaced in less time. */
#define RETRY_AFTER "retry-after: 5\r\n"

_Static_assert(HTTP_HEAD_MAX <= CONTROL_CREDENTIAL_MAX,
    "a token that a request holds could not be passed on");

/* --- TLS ---------------------------------------------------------------- */

/* If unread bytes are left, close(2) resets the connection, and the TLS alert
 * with the reason is lost. Input is therefore still read, without TLS, and
 * discarded. */
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
	if (err == -ENOTCONN && c->source == NULL) {
		/* A health check, which looks whether the port is open. */
		connection_client_gone(c);
		return;
	}
	if (err < 0) {
		if (log_permits(LOG_FAILURE, c->peer, "TLS"))
			log_info("connection %u: %s: TLS: %s", c->number,
			    c->peer, why);
		metrics.tls_failed++;
		if (err == -EACCES)
			broker_refused(c, why);
		if (err != -EIO) /* -EIO is not the client's fault */
			connection_penalise(c, err == -EACCES
						   ? OFFENCE_AUTHENTICATION
						   : OFFENCE_PROTOCOL);
		leave_tls(c);
		return;
	}
	connection_to_http(c);
	relay_read_client(c);
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

/* Sends the credential of the request, if any, to the broker. Returns 0 or
 * -errno. r is NULL where there is no HTTP. */
static int
send_credential(
    struct connection *c, enum control_type type, const struct http_request *r)
{
	enum credential_kind kind = CREDENTIAL_NONE;
	struct slice token = { "", 0 };

	if (r != NULL && r->has_authorization)
		kind = http_bearer(r->authorization, &token) == 0
			   ? CREDENTIAL_BEARER
			   : CREDENTIAL_INVALID;
	connection_read_client(c, false);
	return broker_authenticate(c, type, kind, token);
}

static void
ask_for_grant(
    struct connection *c, const struct http_request *r, struct buf *upgrade)
{
	const struct control_verdict busy = { .verdict = VERDICT_BUSY };

	connection_to_authenticating(c, upgrade);
	c->grant_state = GRANT_ASKED;
	if (send_credential(c, BROKER_REQ_AUTHENTICATE, r) < 0)
		handshake_verdict(c, &busy);
}

static void
ask_for_metrics(struct connection *c, const struct http_request *r)
{
	const struct control_metrics busy = { .verdict = VERDICT_BUSY };
	int err;

	connection_to_operating(c, r->method == HTTP_HEAD);
	err = send_credential(c, BROKER_REQ_METRICS, r);
	if (r->has_authorization)
		explicit_bzero((char *)(uintptr_t)r->authorization.ptr,
		    r->authorization.len);
	if (err < 0)
		handshake_metrics(c, &busy);
}

static void
let_in(struct connection *c)
{
	struct buf upgrade = connection_to_open(c);
	struct iovec iov = { upgrade.data, upgrade.len };

	connection_leave_slot(c);
	if (connection_is_stdio(c) || connection_write(c, &iov, 1))
		relay_take_kept(c);
	buf_clear(&upgrade);
}

/* Answers requests of the operator, on a listener with `operate`. Where the
 * metrics need a credential, clients without one do not learn what is ill.
 * Returns false if the request is none of these. */
static bool
answer_operator(struct connection *c, const struct http_request *r)
{
	struct http_reply reply = { 200, "ok\n", HTTP_TEXT_PLAIN };
	bool live = slice_equal(r->path, SLICE("/livez"));
	const char *ill = live ? NULL : health_reason();

	if (!c->listener.keys.operate || r->origin || r->method == HTTP_OTHER)
		return false;
	if (slice_equal(r->path, SLICE("/metrics"))) {
		ask_for_metrics(c, r);
		return true;
	}
	if (!live && !slice_equal(r->path, SLICE("/healthz")) &&
	    !slice_equal(r->path, SLICE("/readyz")))
		return false;
	if (ill != NULL)
		reply = (struct http_reply){ 503,
			c->listener.has_operators ? "" : ill,
			HTTP_TEXT_PLAIN RETRY_AFTER };
	send_reply(c, &reply, r->method == HTTP_HEAD);
	return true;
}

static void
refuse(struct connection *c, uint8_t verdict, bool head)
{
	const char *text = control_verdict_name((enum verdict)verdict);
	struct http_reply reply = { 401, text, HTTP_TEXT_PLAIN };

	if (verdict == VERDICT_NOT_OPERATOR)
		reply.status = 403;
	if (verdict != VERDICT_BUSY)
		connection_penalise(c, OFFENCE_AUTHENTICATION);
	else
		reply = (struct http_reply){ 503, text,
			HTTP_TEXT_PLAIN "retry-after: 1\r\n" };
	send_reply(c, &reply, head);
}

void
handshake_metrics(struct connection *c, const struct control_metrics *m)
{
	struct http_reply reply = { 200, "", HTTP_TEXT_METRICS };
	struct buf text;

	if (m->verdict != VERDICT_GRANTED) {
		metrics.denied++;
		if (m->verdict < VERDICTS)
			metrics.verdicts[m->verdict]++;
		refuse(c, m->verdict, c->operating.head_only);
		return;
	}
	buf_init(&text, REPLY_MAX / 2);
	metrics_write(
	    &text, connection_count(), admission_waiting() + proxied_count());
	metrics_write_broker(&text, m);
	buf_put_u8(&text, '\0');
	reply.body = (char *)text.data;
	send_reply(c, &reply, c->operating.head_only);
	buf_clear(&text);
}

static void
take_request(struct connection *c, const struct http_request *r, size_t len)
{
	static const struct http_reply not_ready = { 503, "", RETRY_AFTER };
	struct http_reply reply = http_check(r);
	struct buf upgrade;

	if (answer_operator(c, r))
		return;
	/* /readyz is not OK while the server takes no work. Clients do not
	 * learn why. */
	if (reply.status == 200 && health_reason() != NULL)
		reply = not_ready;
	if (reply.status != 101) {
		send_reply(c, &reply, r->method == HTTP_HEAD);
		return;
	}
	/* The reply is prepared before the credential is passed on. */
	buf_init(&upgrade, REPLY_MAX);
	http_write_upgrade(&upgrade, r->key);
	ask_for_grant(c, r, &upgrade);
	explicit_bzero(c->kept.data, len);
	buf_consume(&c->kept, len);
}

void
handshake_http(struct connection *c, const char *data, size_t len)
{
	static const struct http_reply bad = { 400, "", "" };
	static const struct http_reply large = { 431, "", "" };
	struct http_request r;
	ssize_t n;

	buf_put(&c->kept, data, len);
	n = c->kept.failed ? -E2BIG
			   : http_parse(&r, (char *)c->kept.data, c->kept.len);
	if (n > 0)
		take_request(c, &r, (size_t)n);
	if (n >= 0)
		return;
	if (log_permits(LOG_FAILURE, c->peer, "HTTP"))
		log_info("connection %u: %s: %s", c->number, c->peer,
		    n == -E2BIG ? "its request is too long" : "not HTTP");
	metrics.http_failed++;
	connection_penalise(c, OFFENCE_PROTOCOL);
	send_reply(c, n == -E2BIG ? &large : &bad, false);
}

void
handshake_stdio(struct connection *c)
{
	struct buf none = { 0 };

	ask_for_grant(c, NULL, &none);
}

void
handshake_verdict(struct connection *c, const struct control_verdict *v)
{
	bool granted =
	    v->verdict == VERDICT_GRANTED || v->verdict == VERDICT_RESUME;

	c->resume_only = v->verdict == VERDICT_RESUME;
	c->grant_state = granted ? GRANT_HELD : GRANT_NONE;
	metrics.granted += granted;
	metrics.denied += !granted;
	if (v->verdict < VERDICTS)
		metrics.verdicts[v->verdict]++;
	if (c->state != CONN_AUTHENTICATING) {
		connection_client_gone(c); /* the client left meanwhile */
		return;
	}
	if (!granted) {
		refuse(c, v->verdict, false);
		return;
	}
	memcpy(c->grant, v->grant, sizeof(c->grant));
	let_in(c);
}

/* --- messages before a session ------------------------------------------ */

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
#define METHOD(name, wire, family, when, repeat)                               \
	{ wire, FAMILY_##family, params_##name },
#define FILE_METHOD(name, wire, family, use, repeat)                           \
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
		if (slice_equal(slice_of(early_methods[i].name), name))
			return &early_methods[i];
	return NULL;
}

/* Its client asked for something else than its token may still do: it gets what
 * it would have got with status 401. */
static void
refuse_expired(struct connection *c)
{
	const char *text = control_verdict_name(VERDICT_EXPIRED_JWT);

	if (log_permits(LOG_FAILURE, c->peer, text))
		log_info("connection %u: %s: refused: %s; it could only resume "
			 "its session",
		    c->number, c->peer, text);
	metrics.denied++;
	metrics.verdicts[VERDICT_EXPIRED_JWT]++;
	broker_refused(c, text);
	connection_penalise(c, OFFENCE_AUTHENTICATION);
	connection_close(c, WEBSOCKET_CLOSE_POLICY, text);
}

static void
answer_error(struct connection *c, const struct rpc_id *id, int code,
    const char *before, struct slice text, const char *after)
{
	struct buf message, b;
	struct json_writer w;

	/* These two are about a session that it may resume. */
	if (c->resume_only && code != RPC_ATTACHED && code != RPC_INTERNAL) {
		refuse_expired(c);
		return;
	}
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

	if (c->resume_only && !p->resume) {
		refuse_expired(c);
		return;
	}
	if (named && (want.len >= sizeof(start.wanted) ||
			 memchr(want.ptr, '\0', want.len) != NULL)) {
		answer_error(
		    c, id, RPC_MALFORMED, "unknown session id ", want, "");
		return;
	}
	if (named) {
		memcpy(start.wanted, want.ptr, want.len);
		start.request = p->watch ? BROKER_REQ_WATCH : BROKER_REQ_RESUME;
		start.take_over = p->take_over;
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
	else if (params_decode(method->params, m, &params, error) < 0)
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
	} else if (c->resume_only) {
		refuse_expired(c);
	} else {
		connection_close(
		    c, WEBSOCKET_CLOSE_POLICY, "initialize comes first");
	}
	rpc_message_clear(&m);
}

/* --- the session -------------------------------------------------------- */

/* Answers that the session is unknown here; if the operator ended it, with the
 * reason. */
static void
answer_unknown(struct connection *c, const struct rpc_id *request,
    struct slice id, const struct control_session *s)
{
	_cleanup_free_ char *why =
	    xasprintf("%s%s%s%s%s", s->host[0] ? " (host " : "", s->host,
		s->host[0] ? ")" : "", s->reason[0] ? ": " : "", s->reason);

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
		params_decode(params_initialize, &m, &p, error);
	id = p.initialize.watch ? p.initialize.watch_session_id
				: p.initialize.resume_session_id;
	if (s->result == SESSION_UNKNOWN)
		answer_unknown(c, &start->id, id, s);
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
	/* A client that waits for its session asks again and again, and is not
	 * one that misses the deadline. */
	if (s->result == SESSION_ATTACHED || s->result == SESSION_SILENT)
		connection_timer(c, config.pre_auth_deadline_ms);
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
	 * hung up keeps the timer that it has. While the front-end leaves, the
	 * client is told so when its answer was passed on. */
	if (!handoff_waits(c))
		connection_timer(c, frontend_leaves ? 1
				    : connection_is_stdio(c) || c->handoff
					? 0
					: config.ping_interval_ms);
}
