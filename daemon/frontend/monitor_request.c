/*
 * What the front-end asks of the monitor. The answers come as events
 * (monitor_client.c).
 */
#include "monitor_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "connection.h"
#include "log.h"
#include "seqpacket.h"
#include "tls_client.h"

/* The monitor never waits for us, so waiting for it cannot lock up. When it has
 * hung up that is the next to be read, and clients still hear the last of us
 * then. */
static int
request_with(enum control_type type, const void *payload, int fd)
{
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	err = seqpacket_send(CONTROL_FD, b.data, b.len, &fd, fd >= 0);
	buf_clear(&b);
	/* Sockets within sockets, as deep as the client liked (unix(7)). */
	if (err == -ETOOMANYREFS)
		return err;
	if (err < 0 && err != -EPIPE && err != -ECONNRESET)
		log_fatal_errno(err, "control channel");
	return 0;
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
monitor_alive(void)
{
	request(MON_REQ_ALIVE, NULL);
}

void
monitor_helper_hangs(enum tls_helper who)
{
	const struct control_helper h = { .kind = (uint8_t)who };

	request(MON_REQ_HELPER, &h);
}

int
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
	int err;

	memcpy(a.peer, c->peer, sizeof(a.peer));
	if (credential.len < sizeof(a.credential))
		memcpy(a.credential, credential.ptr, credential.len);
	a.has_certificate = voucher != NULL;
	if (voucher != NULL)
		a.voucher = *voucher;
	err = request_with(
	    MON_REQ_AUTHENTICATE, &a, c->unix_peer ? c->in_fd : -1);
	explicit_bzero(&a, sizeof(a));
	return err;
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

int
monitor_ask_session(const struct connection *c, int channel_fd)
{
	struct control_open o = { .conn = c->number };
	struct control_resume r = { .conn = c->number };

	memcpy(o.grant, c->grant, sizeof(o.grant));
	memcpy(r.grant, c->grant, sizeof(r.grant));
	memcpy(r.session_id, c->wanted, sizeof(r.session_id));
	if (!c->resuming)
		return request_with(MON_REQ_OPEN, &o, channel_fd);
	return request_with(
	    c->watching ? MON_REQ_WATCH : MON_REQ_RESUME, &r, channel_fd);
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
