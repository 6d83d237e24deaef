/*
 * What this front-end has seen.
 */
#include "metrics.h"

#include <stddef.h>

#include "util.h"

struct metrics metrics;

/* A counter, perhaps one of several by a label: those stand together. */
static const struct counter {
	const char *name, *help, *label;
	size_t offset;
} counters[] = {
#define COUNTER(name, help, label, member)                                     \
	{                                                                      \
		"execd_" name "_total", help, label,                           \
		    offsetof(struct metrics, member)                           \
	}
	COUNTER("connections_accepted", "Connections let in.", "", accepted),
	COUNTER("connections_refused", "Connections refused at once.",
	    "{reason=\"limit\"}", refused_limit),
	COUNTER(
	    "connections_refused", NULL, "{reason=\"source\"}", refused_source),
	COUNTER("connections_refused", NULL, "{reason=\"penalty\"}",
	    refused_penalty),
	COUNTER("connections_failed", "Connections that became nothing.",
	    "{step=\"tls\"}", tls_failed),
	COUNTER("connections_failed", NULL, "{step=\"http\"}", http_failed),
	COUNTER(
	    "connections_failed", NULL, "{step=\"deadline\"}", deadline_missed),
	COUNTER("credentials", "Credentials decided upon.",
	    "{result=\"granted\"}", granted),
	COUNTER("credentials", NULL, "{result=\"refused\"}", denied),
	COUNTER("sessions", "Answers to initialize.", "{result=\"opened\"}",
	    sessions_opened),
	COUNTER("sessions", NULL, "{result=\"resumed\"}", sessions_resumed),
	COUNTER("sessions", NULL, "{result=\"refused\"}", sessions_failed),
	COUNTER("bytes_received", "Bytes from clients.", "", bytes_received),
	COUNTER("bytes_sent", "Bytes for clients.", "", bytes_sent),
};

void
metrics_write(struct buf *b, unsigned connections)
{
	buf_printf(b,
	    "# HELP execd_connections Connections now.\n"
	    "# TYPE execd_connections gauge\nexecd_connections %u\n",
	    connections);
	for (size_t i = 0; i < nitems(counters); i++) {
		const struct counter *c = &counters[i];
		const uint64_t *value =
		    (const void *)((const char *)&metrics + c->offset);

		if (c->help != NULL)
			buf_printf(b, "# HELP %s %s\n# TYPE %s counter\n",
			    c->name, c->help, c->name);
		buf_printf(b, "%s%s %llu\n", c->name, c->label,
		    (unsigned long long)*value);
	}
}
