/* SPDX-License-Identifier: ISC */
/*
 * What this front-end has seen, and what the broker counts, for the
 * operator's listener in Prometheus' text format: seconds and bytes, counters
 * end in _total. This front-end's begin at zero with each front-end.
 */
#ifndef METRICS_H
#define METRICS_H

#include <stdint.h>

#include "buf.h"
#include "control.h"
#include "source.h"

struct metrics {
	uint64_t accepted;
	uint64_t refused_limit, refused_source, refused_penalty;
	uint64_t refused_waiting; /* until then, for a slot */
	uint64_t tls_failed, http_failed, deadline_missed;
	uint64_t granted, denied;
	uint64_t verdicts[VERDICTS];
	uint64_t penalties[OFFENCES];
	uint64_t sessions_opened, sessions_resumed, sessions_failed;
	uint64_t bytes_received, bytes_sent;
	uint64_t initialize_us[METRICS_NBUCKETS], initialize_us_sum;
};

extern struct metrics metrics;

/* An initialize was answered so long after it came. */
void metrics_initialized(uint64_t us);

/* Appends all of it; connections: those there are now; waiting: those that
 * wait to come in. */
void metrics_write(struct buf *b, unsigned connections, size_t waiting);

/* Appends the broker's. */
void metrics_write_broker(struct buf *b, const struct control_metrics *m);

/* A family's first two lines; type: "gauge", "counter", "histogram". */
void metrics_head(
    struct buf *b, const char *name, const char *help, const char *type);

/* A histogram of METRICS_BUCKETS, in seconds. */
void metrics_histogram(struct buf *b, const char *name, const char *help,
    const uint64_t counts[METRICS_NBUCKETS], uint64_t sum_us);

#endif
