/* SPDX-License-Identifier: ISC */
#include "liveness.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>

/* No event tells of an acknowledgement, so a probe looks for it this often. */
#define LOOK_AGAIN_MS 50

/* So long a proxy takes nothing that waits for it, before its client counts as
 * silent. */
#define PROXY_STUCK_MS 2500

/* The kernel counts the age of an acknowledgement in ticks of at most 10 ms. */
#define TICKS_MS 20

/* Returns false if the kernel has no acknowledgements of this socket, or only
 * some that say nothing of the client. */
static bool
get_info(const struct liveness *l, int fd, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	*info = (struct tcp_info){ 0 };
	return !l->proxied &&
	       getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) == 0;
}

/* Returns how many bytes wait in the socket: FIONREAD, or SIOCOUTQ, of which
 * unix(7) sockets count memory. */
static int
waiting(int fd, unsigned long which)
{
	int n = 0;

	return ioctl(fd, which, &n) < 0 ? 0 : n;
}

void
liveness_begin(
    struct liveness *l, bool proxied, int64_t now, uint32_t interval_ms)
{
	*l = (struct liveness){ .proxied = proxied,
		.ping_ms = now + interval_ms };
}

void
liveness_heard(struct liveness *l)
{
	l->ping.heard = l->probe.heard = true;
	l->stuck_ms = 0;
}

bool
liveness_ask(
    struct question *q, const struct liveness_now *now, bool pings, bool waits)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	waits |= waiting(now->fd, SIOCOUTQ) > 0;
	if (q->asked_ms != 0 || (!pings && !waits))
		return q->asked_ms != 0;
	/* The counters of a proxy's socket are not compared. */
	getsockopt(now->fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	*q = (struct question){ .asked_ms = now->ms,
		.received = info.tcpi_bytes_received,
		.acked = info.tcpi_bytes_acked,
		.unread = waiting(now->fd, FIONREAD),
		.waited = waits };
	return true;
}

/* Tells whether the kernel has heard something since the question. While the
 * window is closed and bytes wait, it probes: tcpi_probes are those that have
 * no answer yet. A kernel answers at most two of them in a second, so one
 * without an answer says little; who looks again and again may take it for
 * silence. */
static bool
is_acknowledged(const struct question *q, const struct tcp_info *info,
    const struct liveness_now *now, unsigned unanswered)
{
	bool closed = info->tcpi_unacked == 0 && info->tcpi_notsent_bytes > 0;

	return info->tcpi_bytes_acked > q->acked ||
	       info->tcpi_bytes_received > q->received ||
	       now->ms - info->tcpi_last_ack_recv > q->asked_ms + TICKS_MS ||
	       (closed && info->tcpi_probes <= unanswered);
}

/* A proxy takes what its client takes, and some more. */
static void
note_taken(struct liveness *l, const struct liveness_now *now)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (!l->proxied)
		return;
	getsockopt(now->fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	if (l->stuck_ms == 0 || info.tcpi_bytes_acked != l->taken ||
	    waiting(now->fd, SIOCOUTQ) == 0)
		l->stuck_ms = now->ms;
	l->taken = info.tcpi_bytes_acked;
}

/*
 * Without acknowledgements only bytes are signs of life. They prove nothing by
 * their absence if the ping is behind something that waits, or if the pong may
 * be behind something that is not read. But somebody who wants the session gets
 * it from a client whose proxy has long taken nothing. A ping's deadline does
 * not cut that client: it may be one that does not read.
 */
static bool
is_alive(const struct liveness *l, const struct question *q,
    const struct liveness_now *now)
{
	struct tcp_info info;

	if (q->heard || waiting(now->fd, FIONREAD) > q->unread)
		return true;
	if (get_info(l, now->fd, &info))
		return is_acknowledged(q, &info, now, q == &l->ping);
	if (q == &l->probe && l->proxied &&
	    now->ms >= l->stuck_ms + PROXY_STUCK_MS)
		return !now->reading;
	return q->waited || !now->reading;
}

static enum liveness_result
look_at_probe(struct liveness *l, const struct liveness_now *now)
{
	bool alive = is_alive(l, &l->probe, now);

	if (!alive && now->ms < l->probe.asked_ms + PROBE_MS)
		return LIVENESS_OPEN;
	l->probe.asked_ms = 0;
	return alive ? LIVENESS_PROBED : LIVENESS_PROBED_OVER;
}

enum liveness_result
liveness_look(struct liveness *l, const struct liveness_now *now)
{
	struct question *ping = &l->ping;
	enum liveness_result probed = LIVENESS_OPEN;

	note_taken(l, now);
	if (l->probe.asked_ms != 0)
		probed = look_at_probe(l, now);
	if (probed != LIVENESS_OPEN)
		return probed;
	if (ping->asked_ms != 0 && is_alive(l, ping, now))
		ping->asked_ms = 0;
	if (ping->asked_ms != 0 && now->deadline_ms > 0 &&
	    now->ms >= ping->asked_ms + now->deadline_ms)
		return LIVENESS_OVER;
	if (now->ms < l->ping_ms)
		return LIVENESS_OPEN;
	l->ping_ms = now->ms + now->interval_ms;
	return LIVENESS_PING;
}

int64_t
liveness_next(const struct liveness *l, const struct liveness_now *now)
{
	int64_t next = l->ping_ms;

	if (l->ping.asked_ms != 0 && now->deadline_ms > 0 &&
	    l->ping.asked_ms + now->deadline_ms < next)
		next = l->ping.asked_ms + now->deadline_ms;
	if (l->probe.asked_ms != 0 && now->ms + LOOK_AGAIN_MS < next)
		next = now->ms + LOOK_AGAIN_MS;
	return next > now->ms ? next : now->ms;
}
