/*
 * What the front-end asks of the monitor. The answers come as events
 * (monitor_client.c).
 */
#include "monitor_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "seqpacket.h"
#include "tls_client.h"

/* The monitor never waits for us, so waiting for it cannot lock up. When it has
 * hung up that is the next to be read, and clients still hear the last of us
 * then. */
static void
request_with(enum control_type type, const void *payload, int fd)
{
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	err = seqpacket_send(CONTROL_FD, b.data, b.len, &fd, fd >= 0);
	buf_clear(&b);
	if (err < 0 && err != -EPIPE && err != -ECONNRESET)
		log_fatal_errno(err, "control channel");
}

static void
request(enum control_type type, const void *payload)
{
	request_with(type, payload, -1);
}

void
monitor_ready(const struct control_ready *r)
{
	request(MON_REQ_READY, r);
}

void
monitor_authenticate(const struct connection *c, enum credential_kind kind,
    struct slice credential)
{
	struct control_authenticate a = {
		.conn = c->number,
		.listener = c->listener,
		.kind = kind,
	};
	const struct control_voucher *voucher =
	    c->tls ? tls_client_voucher(c->tls) : NULL;

	memcpy(a.peer, c->peer, sizeof(a.peer));
	if (credential.len < sizeof(a.credential))
		memcpy(a.credential, credential.ptr, credential.len);
	a.has_certificate = voucher != NULL;
	if (voucher != NULL)
		a.voucher = *voucher;
	request_with(MON_REQ_AUTHENTICATE, &a, c->unix_peer ? c->in_fd : -1);
	explicit_bzero(&a, sizeof(a));
}

void
monitor_refused(const struct connection *c, const char *why)
{
	struct control_refused r = { .listener = c->listener };

	memcpy(r.peer, c->peer, sizeof(r.peer));
	snprintf(r.reason, sizeof(r.reason), "%s", why);
	request(MON_REQ_REFUSED, &r);
}

void
monitor_ask_metrics(const struct connection *c)
{
	struct control_ask_metrics ask = { .conn = c->number };

	request(MON_REQ_METRICS, &ask);
}

void
monitor_open(const struct connection *c)
{
	struct control_open o = { .conn = c->number };

	memcpy(o.grant, c->grant, sizeof(o.grant));
	request(MON_REQ_OPEN, &o);
}

void
monitor_resume(const struct connection *c, const char *session_id)
{
	struct control_resume r = { .conn = c->number };

	memcpy(r.grant, c->grant, sizeof(r.grant));
	strncpy(r.session_id, session_id, sizeof(r.session_id) - 1);
	request(MON_REQ_RESUME, &r);
}

void
monitor_watch_session(const struct connection *c, const char *session_id)
{
	struct control_resume r = { .conn = c->number };

	memcpy(r.grant, c->grant, sizeof(r.grant));
	strncpy(r.session_id, session_id, sizeof(r.session_id) - 1);
	request(MON_REQ_WATCH, &r);
}

void
monitor_close(const struct connection *c)
{
	struct control_close close = { .conn = c->number,
		.channel_ended = c->channel_ended };

	request(MON_REQ_CLOSE, &close);
}

void
monitor_done(void)
{
	request(MON_REQ_DONE, NULL);
}
