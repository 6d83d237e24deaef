/* SPDX-License-Identifier: ISC */
/*
 * Connections that were handed over to their runners.
 */
#include "base.h"
#include "connection.h"

#include <event2/event.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "frontend.h"
#include "loop.h"
#include "metrics.h"
#include "rights.h"
#include "utf8.h"

/* More bytes than a connection can transfer between two reports. */
#define COUNT_MAX_BYTES (UINT64_C(1) << 48)

#define EVENTS_PER_WAKE 64

enum holder {
	HOLDER_RUNNER,	   /* the runner has the client */
	HOLDER_HUNG_UP,	   /* the client hung up while the runner had it */
	HOLDER_RECLAIMING, /* the runner was asked to let go of it */
	HOLDER_RETURNED,   /* the runner has let go of it */
};

struct handoff {
	enum holder holder;
	struct buf reports; /* of the runner, not handled yet */
	union {
		struct {
			/* Unread bytes at the last look, or -1. */
			int unread;
		} hung_up;
		/* RECLAIMING, RETURNED: how the client is closed then. */
		struct {
			uint16_t code;
			char reason[CONTROL_CLOSE_REASON_MAX];
		} end;
	};
};

void
handoff_free(struct handoff *h)
{
	if (h == NULL)
		return;
	buf_clear(&h->reports);
	free(h);
}

static void
set_end(
    struct handoff *h, enum holder holder, uint16_t code, const char *reason)
{
	h->holder = holder;
	h->end.code = code;
	snprintf(h->end.reason, sizeof(h->end.reason), "%.*s",
	    (int)connection_reason_len(reason), reason);
}

/* --- clients that hang up ----------------------------------------------- */

/*
 * A runner that works notices itself that its client has hung up, and reports
 * it. A runner that has stopped must not keep the session attached. libevent
 * does not report a reset without reading, so there is an epoll(7) instance
 * here, which libevent watches.
 */
static int epoll_fd = -1;

/* The client has ended its side, or can no longer be reached. */
static void
hung_up(struct connection *c)
{
	struct handoff *h = c->handoff;

	if (h == NULL || h->holder > HOLDER_HUNG_UP || c->state >= CONN_LEAVING)
		return;
	h->holder = HOLDER_HUNG_UP;
	h->hung_up.unread = -1;
	connection_timer(c, LINGER_MS);
}

/* Returns true if the runner is still reading what the client sent before. */
static bool
is_reading(struct connection *c)
{
	int *unread = &c->handoff->hung_up.unread, before = *unread;

	if (ioctl(c->in_fd, FIONREAD, unread) < 0)
		return false;
	return *unread > 0 && *unread != before;
}

void
handoff_timeout(struct connection *c)
{
	if (c->handoff->holder == HOLDER_HUNG_UP && is_reading(c))
		connection_timer(c, LINGER_MS);
	else
		connection_client_gone(c);
}

static void
epoll_cb(evutil_socket_t fd, short what, void *arg)
{
	struct epoll_event events[EVENTS_PER_WAKE];
	int n = epoll_wait(fd, events, EVENTS_PER_WAKE, 0);

	for (int i = 0; i < n; i++) {
		struct connection *c = connection_find(events[i].data.u32);

		if (c != NULL)
			hung_up(c);
	}
}

void
handoff_init(void)
{
	static struct event event;

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		log_fatal_errno(-errno, "epoll");
	event_assign(
	    &event, base, epoll_fd, EV_READ | EV_PERSIST, epoll_cb, NULL);
	loop_add(&event, NULL);
}

/* Watches the client's socket without reading from it: hung_up() is called once
 * when the client hangs up. Returns 0 or -errno. */
static int
watch_hangup(const struct connection *c)
{
	struct epoll_event e = { .events = EPOLLRDHUP | EPOLLET,
		.data.u32 = c->number };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->in_fd, &e) < 0 ? -errno
								    : 0;
}

void
handoff_unwatch(const struct connection *c)
{
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, c->in_fd, NULL);
}

/* --- to the runner ------------------------------------------------------ */

/* Everything for the client must have been written before the runner writes to
 * it. */
static bool
may_go(const struct connection *c, size_t len)
{
	return c->listener.keys.hand_over &&
	       c->start.request != BROKER_REQ_WATCH && c->tls == NULL &&
	       !connection_is_stdio(c) && c->in_fd >= 0 && !c->pong.due &&
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
	size_t len = FRAME_HEADER_BYTES + c->start.initialize.len + c->kept.len;
	uint8_t header[2 * FRAME_HEADER_BYTES];
	struct iovec iov[] = { { header, sizeof(header) },
		{ c->start.initialize.data, c->start.initialize.len },
		{ c->kept.data, c->kept.len } };
	ssize_t n;

	if (!may_go(c, len) || watch_hangup(c) < 0)
		return false;
	frame_put_length(header, (uint32_t)len);
	frame_put_length(
	    header + FRAME_HEADER_BYTES, (uint32_t)c->start.initialize.len);
	n = rights_send(c->channel.fd, iov, (int)nitems(iov), c->in_fd);
	if (n <= 0) {
		log_warn(-errno, "connection %u: not handed over", c->number);
		handoff_unwatch(c);
		return false;
	}
	c->handoff = xcalloc(1, sizeof(*c->handoff));
	c->handoff->holder = HOLDER_RUNNER;
	buf_init(&c->handoff->reports,
	    FRAME_HEADER_BYTES + CONTROL_MESSAGE_MAX + SCRATCH_BYTES);
	event_del(&c->in_event);
	send_rest(c, iov, (int)nitems(iov), (size_t)n);
	c->start.behind = c->kept.len;
	buf_put(&c->start.initialize, c->kept.data, c->kept.len);
	buf_clear(&c->kept);
	return true;
}

void
handoff_refused(struct connection *c)
{
	if (c->handoff == NULL)
		return;
	handoff_unwatch(c);
	if (c->handoff->holder != HOLDER_RECLAIMING) {
		handoff_free(c->handoff);
		c->handoff = NULL;
	}
	c->start.initialize.len -= c->start.behind;
	buf_put(&c->kept, c->start.initialize.data + c->start.initialize.len,
	    c->start.behind);
	c->start.behind = 0;
}

/* --- from the runner ---------------------------------------------------- */

static void
let_end(struct connection *c, const struct control_client *r)
{
	struct handoff *h = c->handoff;

	if (h->holder == HOLDER_RECLAIMING)
		h->holder = HOLDER_RETURNED;
	else
		set_end(h, HOLDER_RETURNED, (uint16_t)r->close_code, r->reason);
	if (r->reason[0] != '\0')
		log_info(
		    "connection %u: %s: %s", c->number, c->peer, r->reason);
	if (h->end.code == 0)
		connection_client_gone(c);
	else
		connection_close(c, h->end.code, h->end.reason);
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

/* Takes complete reports. Returns 0 or -EBADMSG. */
static int
take_reports(struct connection *c)
{
	struct buf *b = &c->handoff->reports;
	size_t at = 0;
	int err = 0;

	while (err == 0 && c->channel.fd >= 0 &&
	       b->len - at >= FRAME_HEADER_BYTES) {
		size_t len = frame_get_length(b->data + at);

		if (len > CONTROL_MESSAGE_MAX)
			return -EBADMSG;
		if (b->len - at - FRAME_HEADER_BYTES < len)
			break;
		at += FRAME_HEADER_BYTES;
		err = take_report(c, b->data + at, len);
		at += len;
	}
	buf_consume(b, at);
	return err;
}

void
handoff_read(struct connection *c)
{
	size_t n = connection_read_channel(c, scratch, SCRATCH_BYTES);

	if (n == 0)
		return;
	buf_put(&c->handoff->reports, scratch, n);
	if (!c->handoff->reports.failed && take_reports(c) == 0)
		return;
	log_error(
	    0, "connection %u: impossible report of the runner", c->number);
	if (c->channel.fd >= 0 && c->state < CONN_LEAVING)
		connection_channel_ended(c);
}

/* --- back from the runner ----------------------------------------------- */

bool
handoff_reclaim(struct connection *c, uint16_t code, const char *reason)
{
	struct handoff *h = c->handoff;

	if (h == NULL || h->holder == HOLDER_RETURNED || c->channel.fd < 0)
		return false;
	if (h->holder == HOLDER_RECLAIMING)
		return true;
	set_end(h, HOLDER_RECLAIMING, code, reason);
	shutdown(c->channel.fd, SHUT_WR);
	connection_timer(c, GOODBYE_MS);
	return true;
}

bool
handoff_return(struct connection *c)
{
	struct handoff *h = c->handoff;

	if (h == NULL || h->holder != HOLDER_RECLAIMING)
		return false;
	h->holder = HOLDER_RETURNED;
	connection_close(c, h->end.code, h->end.reason);
	return true;
}

bool
handoff_waits(const struct connection *c)
{
	return c->handoff != NULL &&
	       (c->handoff->holder == HOLDER_HUNG_UP ||
		   c->handoff->holder == HOLDER_RECLAIMING);
}
