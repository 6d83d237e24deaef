/*
 * What this front-end has seen, for the operator's listener: counters that
 * begin at zero with each front-end, in Prometheus' text format.
 */
#ifndef METRICS_H
#define METRICS_H

#include <stdint.h>

#include "buf.h"

struct metrics {
	uint64_t accepted;
	uint64_t refused_limit, refused_source, refused_penalty;
	uint64_t tls_failed, http_failed, deadline_missed;
	uint64_t granted, denied;
	uint64_t sessions_opened, sessions_resumed, sessions_failed;
	uint64_t bytes_received, bytes_sent;
};

extern struct metrics metrics;

/* Appends all of it; connections: those there are now. */
void metrics_write(struct buf *b, unsigned connections);

#endif
