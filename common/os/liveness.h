/* SPDX-License-Identifier: ISC */
/*
 * Whether the other end of a connection is still there. A connection whose
 * client has changed its address or lost its network ends without a packet. So
 * the other end is asked: by a ping, or by output that waits already. What
 * shows that it lives is any byte from it, any byte that it acknowledges, and
 * its answers to the kernel's probes of a closed window (tcp(7), TCP_INFO). The
 * last two come from its kernel, so a client that is stopped, or does not read,
 * is alive.
 *
 * Two may ask at the same time: the ping timer, whose question has the
 * operator's deadline, and somebody who wants the session, whose question has
 * PROBE_MS.
 */
#pragma once

#include "base.h"

/* The broker waits a little longer, and its client has its answer within 3 s.
 */
#define PROBE_MS 1800

/* What was known when the question was asked. */
struct question {
	int64_t asked_ms; /* as now_ms(); 0: nothing is asked */
	uint64_t received, acked;
	int unread;
	bool waited; /* something was queued in front of it */
	bool heard;  /* a byte came since */
};

struct liveness {
	/* The socket is a proxy's, which acknowledges for itself. */
	bool proxied;
	/* Of a proxy that something waits for: what it has acknowledged, and
	 * since when it takes no more. 0: that is not known. */
	uint64_t taken;
	int64_t stuck_ms;
	struct question ping, probe;
	int64_t ping_ms; /* when the next ping is due */
};

/* What is known at a moment, apart from the socket. */
struct liveness_now {
	int64_t ms; /* now_ms() */
	int fd;
	bool reading;	      /* what comes is read at once */
	uint32_t interval_ms; /* of pings */
	uint32_t deadline_ms; /* for an answer to them; 0: none */
};

enum liveness_result {
	LIVENESS_OPEN,	      /* look again at liveness_next() */
	LIVENESS_PING,	      /* the same, and a ping is due */
	LIVENESS_OVER,	      /* no sign of life within the deadline */
	LIVENESS_PROBED,      /* the probe found a sign of life */
	LIVENESS_PROBED_OVER, /* it found none within PROBE_MS */
};

/* Begins with the first ping an interval later. */
void liveness_begin(
    struct liveness *l, bool proxied, int64_t now, uint32_t interval_ms);

/* A byte came. */
void liveness_heard(struct liveness *l);

/*
 * Asks, before the ping is written. pings: one is. waits: output of the caller
 * does. Returns false if nothing asks: no ping can be written now, and nothing
 * waits. A question that is open stays as it is.
 */
bool liveness_ask(
    struct question *q, const struct liveness_now *now, bool pings, bool waits);

enum liveness_result liveness_look(
    struct liveness *l, const struct liveness_now *now);

/* Returns when to look next, as now_ms(). */
int64_t liveness_next(const struct liveness *l, const struct liveness_now *now);
