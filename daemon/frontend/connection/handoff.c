/* SPDX-License-Identifier: ISC */
/*
 * Connections that were handed over to their runners.
 */
#include "handoff.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frontend.h"
#include "handshake.h"
#include "hangup.h"
#include "log.h"
#include "metrics.h"
#include "relay.h"
#include "rights.h"
#include "utf8.h"
#include "util.h"

/* More bytes than a connection can transfer between two reports. */
#define COUNT_MAX_BYTES (UINT64_C(1) << 48)

/* How the client is closed when its runner has let go of it. */
struct reclaim {
	uint16_t code;
	char reason[CONTROL_CLOSE_REASON_MAX];
};

/* --- to the runner ------------------------------------------------------ */

/* Everything for the client must have been written before the runner writes to
 * it. */
static bool
may_go(const struct connection *c, size_t len)
{
	return c->hand_over && !c->watching && c->tls == NULL && !c->stdio &&
	       c->in_fd >= 0 && !c->want_pong &&
	       pending_bytes(&c->downlink) == 0 &&
	       len <= config.max_message_bytes;
}

/* Sends the rest of what was not sent yet. */
static void
send_rest(struct connection *c, struct iovec *iov, int count, size_t n)
{
	for (; count > 0 && n >= iov->iov_len; iov++, count--)
		n -= iov->iov_len;
	if (count == 0)
		return;
	iov->iov_base = (uint8_t *)iov->iov_base + n;
	iov->iov_len -= n;
	relay_write(c, iov, count);
}

bool
handoff_begin(struct connection *c)
{
	size_t len = FRAME_HEADER_BYTES + c->initialize.len + c->head.len;
	uint8_t header[2 * FRAME_HEADER_BYTES];
	struct iovec iov[] = { { header, sizeof(header) },
		{ c->initialize.data, c->initialize.len },
		{ c->head.data, c->head.len } };
	ssize_t n;

	if (!may_go(c, len) || hangup_watch(c) < 0)
		return false;
	frame_put_length(header, (uint32_t)len);
	frame_put_length(
	    header + FRAME_HEADER_BYTES, (uint32_t)c->initialize.len);
	n = rights_send(c->channel_fd, iov, (int)nitems(iov), c->in_fd);
	if (n <= 0) {
		log_warn(-errno, "connection %u: not handed over", c->number);
		hangup_forget(c);
		return false;
	}
	c->handed_off = true;
	event_del(&c->in_event);
	send_rest(c, iov, (int)nitems(iov), (size_t)n);
	/* From now on c->head holds reports of the runner. */
	c->behind = c->head.len;
	buf_put(&c->initialize, c->head.data, c->head.len);
	buf_clear(&c->head);
	return true;
}

void
handoff_refused(struct connection *c)
{
	if (!c->handed_off)
		return;
	hangup_forget(c);
	c->handed_off = c->hung_up = false;
	c->initialize.len -= c->behind;
	buf_put(&c->head, c->initialize.data + c->initialize.len, c->behind);
	c->behind = 0;
}

/* --- from the runner ---------------------------------------------------- */

static void
let_end(struct connection *c, const struct control_client *r)
{
	uint16_t code = c->reclaim ? c->reclaim->code : (uint16_t)r->close_code;

	c->returned = true;
	if (r->reason[0] != '\0')
		log_info(
		    "connection %u: %s: %s", c->number, c->peer, r->reason);
	if (code == 0)
		connection_client_gone(c);
	else
		connection_close(
		    c, code, c->reclaim ? c->reclaim->reason : r->reason);
}

/* Checks a report. The runner may be controlled by its client. Returns 0 or
 * -EBADMSG. */
static int
check(const struct control_client *r)
{
	bool code = r->close_code == 0 || r->close_code == 1005 ||
		    (r->close_code <= UINT16_MAX &&
			websocket_close_code_valid((uint16_t)r->close_code));

	return code && r->event <= CLIENT_ENDED &&
		       r->received <= COUNT_MAX_BYTES &&
		       r->sent <= COUNT_MAX_BYTES &&
		       utf8_check(0, (const uint8_t *)r->reason,
			   strlen(r->reason)) == 0
		   ? 0
		   : -EBADMSG;
}

static int
take_report(struct connection *c, const uint8_t *p, size_t len)
{
	struct control_client r;

	if (control_get(p, len, CHANNEL_CLIENT, &r) < 0 || check(&r) < 0)
		return -EBADMSG;
	metrics.bytes_received += r.received;
	metrics.bytes_sent += r.sent;
	if (c->state == CONN_STARTING)
		handshake_started(c);
	if (r.event == CLIENT_ENDED && c->state < CONN_LEAVING)
		let_end(c, &r);
	return 0;
}

/* Takes complete reports from c->head. Returns 0 or -EBADMSG. */
static int
take_reports(struct connection *c)
{
	size_t at = 0;
	int err = 0;

	while (err == 0 && c->channel_fd >= 0 &&
	       c->head.len - at >= FRAME_HEADER_BYTES) {
		size_t len = frame_get_length(c->head.data + at);

		if (len > CONTROL_MESSAGE_MAX)
			return -EBADMSG;
		if (c->head.len - at - FRAME_HEADER_BYTES < len)
			break;
		at += FRAME_HEADER_BYTES;
		err = take_report(c, c->head.data + at, len);
		at += len;
	}
	buf_consume(&c->head, at);
	return err;
}

void
handoff_read(struct connection *c)
{
	size_t n = connection_read_channel(c, scratch, SCRATCH_BYTES);

	if (n == 0)
		return;
	buf_put(&c->head, scratch, n);
	if (!c->head.failed && take_reports(c) == 0)
		return;
	log_error(
	    0, "connection %u: impossible report of the runner", c->number);
	if (c->channel_fd >= 0 && c->state < CONN_LEAVING)
		connection_channel_ended(c);
}

/* --- back from the runner ----------------------------------------------- */

bool
handoff_reclaim(struct connection *c, uint16_t code, const char *reason)
{
	if (!c->handed_off || c->returned || c->channel_fd < 0)
		return false;
	if (c->reclaim != NULL)
		return true;
	c->reclaim = xcalloc(1, sizeof(*c->reclaim));
	c->reclaim->code = code;
	snprintf(c->reclaim->reason, sizeof(c->reclaim->reason), "%.*s",
	    (int)connection_reason_len(reason), reason);
	shutdown(c->channel_fd, SHUT_WR);
	connection_timer(c, GOODBYE_MS);
	return true;
}

void
handoff_return(struct connection *c)
{
	if (c->reclaim == NULL || c->returned)
		return;
	c->returned = true;
	connection_close(c, c->reclaim->code, c->reclaim->reason);
}

/* --- a client that hangs up --------------------------------------------- */

void
handoff_hung_up(struct connection *c)
{
	if (c->returned || c->reclaim != NULL || c->state >= CONN_LEAVING)
		return;
	c->hung_up = true;
	c->unread = -1;
	connection_timer(c, LINGER_MS);
}

/* Returns true if the runner is still reading what the client sent before. */
static bool
is_reading(struct connection *c)
{
	int before = c->unread;

	if (ioctl(c->in_fd, FIONREAD, &c->unread) < 0)
		return false;
	return c->unread > 0 && c->unread != before;
}

void
handoff_timeout(struct connection *c)
{
	if (c->state >= CONN_LEAVING)
		return;
	if (c->reclaim == NULL && is_reading(c))
		connection_timer(c, LINGER_MS);
	else
		connection_client_gone(c);
}
