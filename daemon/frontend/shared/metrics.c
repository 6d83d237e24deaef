/* SPDX-License-Identifier: ISC */
/*
 * The metrics of the front-end.
 */
#include "metrics.h"

#include <stddef.h>

#include "util.h"

struct metrics metrics;

/* A counter. Counters with the same name and different labels are in adjacent
 * rows. */
static const struct counter {
	const char *name, *help, *label;
	size_t offset;
} counters[] = {
#define COUNTER(name, help, label, member)                                     \
	{                                                                      \
		"execd_" name "_total", help, label,                           \
		    offsetof(struct metrics, member)                           \
	}
	COUNTER("connections_accepted", "Connections that were accepted.", "",
	    accepted),
	COUNTER("connections_refused", "Connections refused at once.",
	    "{reason=\"limit\"}", refused_limit),
	COUNTER(
	    "connections_refused", NULL, "{reason=\"source\"}", refused_source),
	COUNTER("connections_refused", NULL, "{reason=\"penalty\"}",
	    refused_penalty),
	COUNTER("connections_refused", NULL, "{reason=\"waiting\"}",
	    refused_waiting),
	COUNTER("connections_failed",
	    "Connections that ended before "
	    "initialize.",
	    "{step=\"tls\"}", tls_failed),
	COUNTER("connections_failed", NULL, "{step=\"proxy\"}", proxy_failed),
	COUNTER("connections_failed", NULL, "{step=\"http\"}", http_failed),
	COUNTER(
	    "connections_failed", NULL, "{step=\"deadline\"}", deadline_missed),
	COUNTER("credentials", "Credentials that were checked.",
	    "{result=\"granted\"}", granted),
	COUNTER("credentials", NULL, "{result=\"refused\"}", denied),
	COUNTER("sessions", "Answers to initialize.", "{result=\"opened\"}",
	    sessions_opened),
	COUNTER("sessions", NULL, "{result=\"resumed\"}", sessions_resumed),
	COUNTER("sessions", NULL, "{result=\"refused\"}", sessions_failed),
	COUNTER("bytes_received", "Bytes from clients.", "", bytes_received),
	COUNTER("bytes_sent", "Bytes to clients.", "", bytes_sent),
};

void
metrics_head(
    struct buf *b, const char *name, const char *help, const char *type)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static const uint32_t bounds[METRICS_NBUCKETS - 1] = METRICS_BUCKETS;

void
metrics_initialized(uint64_t us)
{
	size_t i = 0;

	while (i < nitems(bounds) && us > bounds[i])
		i++;
	metrics.initialize_us[i]++;
	metrics.initialize_us_sum += us;
}

/* Each bucket includes those below it. */
void
metrics_histogram(struct buf *b, const char *name, const char *help,
    const uint64_t counts[METRICS_NBUCKETS], uint64_t sum_us)
{
	unsigned long long total = 0;

	metrics_head(b, name, help, "histogram");
	for (size_t i = 0; i < nitems(bounds); i++) {
		total += counts[i];
		buf_printf(b, "%s_bucket{le=\"%g\"} %llu\n", name,
		    bounds[i] / 1e6, total);
	}
	total += counts[nitems(bounds)];
	buf_printf(b, "%s_bucket{le=\"+Inf\"} %llu\n", name, total);
	buf_printf(b, "%s_sum %llu.%06llu\n%s_count %llu\n", name,
	    (unsigned long long)sum_us / 1000000,
	    (unsigned long long)sum_us % 1000000, name, total);
}

static void
write_refusals(struct buf *b)
{
	static const char name[] = "execd_credentials_refused_total";

	metrics_head(
	    b, name, "Credentials that were refused, by reason.", "counter");
	for (unsigned i = VERDICT_GRANTED + 1; i < VERDICTS; i++)
		buf_printf(b, "%s{reason=\"%s\"} %llu\n", name,
		    control_verdict_name(i),
		    (unsigned long long)metrics.verdicts[i]);
}

static void
write_penalties(struct buf *b)
{
	static const char name[] = "execd_penalties_total";
	static const char *const offences[OFFENCES] = {
		[OFFENCE_AUTHENTICATION] = "authentication",
		[OFFENCE_DEADLINE] = "deadline",
		[OFFENCE_PROTOCOL] = "protocol",
		[OFFENCE_CRASH] = "crash",
	};

	metrics_head(b, name, "Offences that raised the penalty of a source.",
	    "counter");
	for (size_t i = 0; i < OFFENCES; i++)
		buf_printf(b, "%s{offence=\"%s\"} %llu\n", name, offences[i],
		    (unsigned long long)metrics.penalties[i]);
	metrics_head(
	    b, "execd_sources", "Sources that are remembered now.", "gauge");
	buf_printf(b, "execd_sources %zu\n", source_count());
}

void
metrics_write(struct buf *b, unsigned connections, size_t waiting)
{
	metrics_head(b, "execd_connections", "Connections now.", "gauge");
	buf_printf(b, "execd_connections %u\n", connections);
	metrics_head(b, "execd_connections_waiting",
	    "Connections that wait for admission now.", "gauge");
	buf_printf(b, "execd_connections_waiting %zu\n", waiting);
	for (size_t i = 0; i < nitems(counters); i++) {
		const struct counter *c = &counters[i];
		const uint64_t *value =
		    (const void *)((const char *)&metrics + c->offset);

		if (c->help != NULL)
			metrics_head(b, c->name, c->help, "counter");
		buf_printf(b, "%s%s %llu\n", c->name, c->label,
		    (unsigned long long)*value);
	}
	write_refusals(b);
	write_penalties(b);
	metrics_histogram(b, "execd_initialize_seconds",
	    "Seconds from initialize to its answer.", metrics.initialize_us,
	    metrics.initialize_us_sum);
}
