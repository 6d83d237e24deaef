/* SPDX-License-Identifier: ISC */
/*
 * The phases before a session: TLS, HTTP upgrade and authentication
 * (doc/protocol.md sections 1.2, 1.5 and 2). Messages after that are in
 * handshake_message.c.
 */
#include "handshake.h"

#include <errno.h>
#include <string.h>

#include "admission.h"
#include "broker_request.h"
#include "frontend.h"
#include "health.h"
#include "http.h"
#include "log.h"
#include "log_limit.h"
#include "metrics.h"
#include "proxied.h"
#include "relay.h"
#include "tls_client.h"
#include "util.h"

#define REPLY_MAX (64u << 10)

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

static void
ask_for_grant(
    struct connection *c, const struct http_request *r, struct buf *upgrade)
{
	const struct control_verdict busy = { .verdict = VERDICT_BUSY };
	enum credential_kind kind = CREDENTIAL_NONE;
	struct slice token = { "", 0 };

	if (r != NULL && r->has_authorization)
		kind = http_bearer(r->authorization, &token) == 0
			   ? CREDENTIAL_BEARER
			   : CREDENTIAL_INVALID;
	connection_to_authenticating(c, upgrade);
	connection_read_client(c, false);
	c->grant_state = GRANT_ASKED;
	if (broker_authenticate(c, kind, token) < 0)
		handshake_verdict(c, &busy);
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

/* Answers requests of the operator, on a listener that only the operator uses.
 * Returns false if the request is none of these. */
static bool
answer_operator(struct connection *c, const struct http_request *r)
{
	struct http_reply reply = { 200, "ok\n", HTTP_TEXT_PLAIN };
	bool live = slice_equal(r->path, SLICE("/livez"));
	const char *ill = live ? NULL : health_reason();

	if (!c->listener.operate || r->origin || r->method == HTTP_OTHER)
		return false;
	if (slice_equal(r->path, SLICE("/metrics"))) {
		connection_to_operating(c, r->method == HTTP_HEAD);
		connection_read_client(c, false);
		broker_ask_metrics(c);
		return true;
	}
	if (!live && !slice_equal(r->path, SLICE("/healthz")) &&
	    !slice_equal(r->path, SLICE("/readyz")))
		return false;
	if (ill != NULL)
		reply = (struct http_reply){ 503, ill,
			HTTP_TEXT_PLAIN RETRY_AFTER };
	send_reply(c, &reply, r->method == HTTP_HEAD);
	return true;
}

void
handshake_metrics(struct connection *c, const struct control_metrics *m)
{
	struct http_reply reply = { 200, "", HTTP_TEXT_METRICS };
	struct buf text;

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
	bool granted = v->verdict == VERDICT_GRANTED;

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
		refuse(c, v->verdict);
		return;
	}
	memcpy(c->grant, v->grant, sizeof(c->grant));
	let_in(c);
}
