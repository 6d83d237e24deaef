/* SPDX-License-Identifier: ISC */
/*
 * Metrics for the operator's listener, in the text format of Prometheus: the
 * counters of the front-end and those of the broker. Units are seconds and
 * bytes, and names of counters end in _total. The front-end's counters start at
 * zero with each front-end.
 */
#pragma once

#include <stdint.h>

#include "source.h"

struct metrics {
	uint64_t accepted;
	uint64_t refused_limit, refused_source, refused_penalty;
	uint64_t refused_waiting; /* refused after waiting for a slot */
	uint64_t proxy_failed, tls_failed, http_failed, deadline_missed;
	uint64_t granted, denied;
	uint64_t verdicts[VERDICTS];
	uint64_t penalties[OFFENCES];
	uint64_t sessions_opened, sessions_resumed, sessions_failed;
	uint64_t bytes_received, bytes_sent;
	uint64_t initialize_us[METRICS_NBUCKETS], initialize_us_sum;
};

extern struct metrics metrics;

/* Counts an answer to initialize. `us` is the time since the request. */
void metrics_initialized(uint64_t us);

/* Appends the metrics of the front-end. `connections` is the current number of
 * connections, `waiting` the number of those that wait to come in. */
void metrics_write(struct buf *b, unsigned connections, size_t waiting);

/* Appends the metrics of the broker. */
void metrics_write_broker(struct buf *b, const struct control_metrics *m);
