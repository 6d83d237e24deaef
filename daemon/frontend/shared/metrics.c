/* SPDX-License-Identifier: ISC */
#include "metrics.h"

#include "config.h"
#include "log_output.h"

struct metrics metrics;

/* One number of a struct. Numbers with the same name and different labels are
 * in adjacent rows, and only the first has a help. */
struct series {
	const char *name, *help, *type, *label;
	size_t offset;
};

static const struct series counters[] = {
#define COUNTER(name, help, label, member)                                     \
	{                                                                      \
		"execd_" name "_total", help, "counter", label,                \
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

static void
write_head(struct buf *b, const char *name, const char *help, const char *type)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void
write_gauge(struct buf *b, const char *name, const char *help, uint64_t value)
{
	write_head(b, name, help, "gauge");
	buf_printf(b, "%s %llu\n", name, (unsigned long long)value);
}

static void
write_series(
    struct buf *b, const struct series *rows, size_t n, const void *from)
{
	for (size_t i = 0; i < n; i++) {
		const uint64_t *value =
		    (const void *)((const char *)from + rows[i].offset);

		if (rows[i].help != NULL)
			write_head(b, rows[i].name, rows[i].help, rows[i].type);
		buf_printf(b, "%s%s %llu\n", rows[i].name, rows[i].label,
		    (unsigned long long)*value);
	}
}

/* Appends numbers that are told apart by the values of one label. */
static void
write_labelled(struct buf *b, const char *name, const char *label,
    const char *const *labels, const uint64_t *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(b, "%s{%s=\"%s\"} %llu\n", name, label, labels[i],
		    (unsigned long long)values[i]);
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

/* Appends a histogram with the bounds of METRICS_BUCKETS, in seconds. Each
 * bucket includes those below it. */
static void
write_histogram(struct buf *b, const char *name, const char *help,
    const uint64_t counts[METRICS_NBUCKETS], uint64_t sum_us)
{
	unsigned long long total = 0;

	write_head(b, name, help, "histogram");
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
	const char *names[VERDICTS];

	for (unsigned i = 0; i < VERDICTS; i++)
		names[i] = control_verdict_name(i);
	write_head(
	    b, name, "Credentials that were refused, by reason.", "counter");
	write_labelled(b, name, "reason", names + VERDICT_MISSING_TOKEN,
	    metrics.verdicts + VERDICT_MISSING_TOKEN,
	    VERDICTS - VERDICT_MISSING_TOKEN);
}

void
metrics_write(struct buf *b, unsigned connections, size_t waiting)
{
	static const char *const offences[OFFENCES] = {
		[OFFENCE_AUTHENTICATION] = "authentication",
		[OFFENCE_DEADLINE] = "deadline",
		[OFFENCE_PROTOCOL] = "protocol",
		[OFFENCE_CRASH] = "crash",
	};

	write_gauge(b, "execd_connections", "Connections now.", connections);
	write_gauge(b, "execd_connections_waiting",
	    "Connections that wait for admission now.", waiting);
	write_series(b, counters, nitems(counters), &metrics);
	write_refusals(b);
	write_head(b, "execd_penalties_total",
	    "Offences that raised the penalty of a source.", "counter");
	write_labelled(b, "execd_penalties_total", "offence", offences,
	    metrics.penalties, OFFENCES);
	write_gauge(b, "execd_sources", "Sources that are remembered now.",
	    source_count());
	write_histogram(b, "execd_initialize_seconds",
	    "Seconds from initialize to its answer.", metrics.initialize_us,
	    metrics.initialize_us_sum);
}

/* --- the broker's counters ---------------------------------------------- */

static const struct series families[] = {
#define FAMILY(name, help, type, label, member)                                \
	{                                                                      \
		"execd_" name, help, type, label,                              \
		    offsetof(struct control_metrics, member)                   \
	}
	FAMILY("open_sessions", "Sessions now.", "gauge",
	    "{state=\"attached\"}", attached),
	FAMILY("open_sessions", NULL, NULL, "{state=\"detached\"}", detached),
	FAMILY("open_sessions", NULL, NULL, "{state=\"ending\"}", ending),
	FAMILY("kept_sessions",
	    "Sessions that are kept for longer without a client.", "gauge", "",
	    kept),
	FAMILY("silent_runners",
	    "Sessions whose runner had not answered when it was asked, at an "
	    "earlier reading.",
	    "gauge", "", silent),
	FAMILY("processes", "Commands that run now.", "gauge", "", processes),
	FAMILY("processes_started_total", "Commands that were started.",
	    "counter", "", started),
	FAMILY("sandbox_denials_total",
	    "Commands that failed, probably because of their sandbox.",
	    "counter", "", denied),
	FAMILY("network_decisions_total",
	    "Connections of commands whose network is a list of hosts.",
	    "counter", "{decision=\"allow\"}", network_allowed),
	FAMILY("network_decisions_total", NULL, NULL, "{decision=\"deny\"}",
	    network_denied),
	FAMILY("output_bytes_total",
	    "Bytes that commands had written when they exited.", "counter", "",
	    output_bytes),
	FAMILY("programs_replaced_total",
	    "Programs that ended and were started anew.", "counter",
	    "{program=\"execd-frontend\"}", replaced_frontends),
	FAMILY("programs_replaced_total", NULL, NULL,
	    "{program=\"execd-keys\"}", replaced_keys),
	FAMILY("start_time_seconds",
	    "When this broker began, in seconds since 1970; its counters began "
	    "then, too.",
	    "gauge", "", begun_s),
	FAMILY("audit_records_total", "Audit records that were written.",
	    "counter", "", records),
	FAMILY("audit_records_lost_total", "Audit records that were lost.",
	    "counter", "", records_lost),
};

static void
write_programs(struct buf *b, const char *name, const char *help,
    const uint64_t values[PROGRAMS])
{
	static const char *const programs[PROGRAMS] = {
		[PROGRAM_ROOT] = "execd",
		[PROGRAM_BROKER] = "execd-broker",
		[PROGRAM_FRONTEND] = "execd-frontend",
		[PROGRAM_KEYS] = "execd-keys",
		[PROGRAM_RUNNER] = "execd-runner",
	};

	write_head(b, name, help, "gauge");
	write_labelled(b, name, "program", programs, values, PROGRAMS);
}

static void
write_exited(struct buf *b, const uint64_t *exited)
{
	static const char name[] = "execd_processes_exited_total";
	const char *names[END_CAUSES];

	for (unsigned i = 0; i < END_CAUSES; i++)
		names[i] = i == END_ITSELF ? "itself" : control_cause_name(i);
	write_head(b, name, "Commands that have exited, by what ended them.",
	    "counter");
	write_labelled(b, name, "by", names, exited, END_CAUSES);
}

/* Writes nothing if nothing can expire. */
static void
write_expiry(struct buf *b, const char *name, const char *help, uint64_t end)
{
	struct timespec now;

	if (end == 0)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	write_gauge(b, name, help,
	    end > (uint64_t)now.tv_sec ? end - (uint64_t)now.tv_sec : 0);
}

/* --- identities ---------------------------------------------------------- */

#define ALWAYS SIZE_MAX

/* What is known of each identity; `known` is the offset of its flag. */
static const struct identity_family {
	const char *name, *help, *type;
	size_t offset, known;
	bool in_ms; /* it is shown in seconds */
} identity_families[] = {
#define IDENTITY(name, help, type, member, known, in_ms)                       \
	{                                                                      \
		"execd_identity_" name, help, type,                            \
		    offsetof(struct control_identity_usage, member), known,    \
		    in_ms                                                      \
	}
	IDENTITY("sessions", "Sessions of each identity now.", "gauge",
	    sessions, ALWAYS, false),
	IDENTITY("cpu_seconds_total",
	    "Processor time of sessions, also of those that have ended.",
	    "counter", cpu_ms, offsetof(struct control_identity_usage, has_cpu),
	    true),
	IDENTITY("memory_bytes", "Memory of all sessions now.", "gauge",
	    memory_bytes, offsetof(struct control_identity_usage, has_memory),
	    false),
	IDENTITY("denials_total",
	    "Credentials and sessions that were refused, and what sandboxes "
	    "and lists of hosts denied to commands.",
	    "counter", denials, ALWAYS, false),
};

/* Appends the value of a label, with the escapes of the text format. */
static void
put_label(struct buf *b, const char name[CONTROL_IDENTITY_MAX])
{
	size_t len = strnlen(name, CONTROL_IDENTITY_MAX);

	for (size_t i = 0; i < len; i++) {
		bool escaped = strchr("\"\\\n", name[i]) != NULL;

		if (escaped)
			buf_put_u8(b, '\\');
		buf_put_u8(b, name[i] == '\n' ? 'n' : (uint8_t)name[i]);
	}
}

static void
write_identity(struct buf *b, const struct identity_family *f,
    const struct control_identity_usage *u)
{
	uint64_t value =
	    *(const uint64_t *)(const void *)((const char *)u + f->offset);

	buf_printf(b, "%s{identity=\"", f->name);
	put_label(b, u->name);
	if (f->in_ms)
		buf_printf(b, "\"} %llu.%03llu\n",
		    (unsigned long long)value / 1000,
		    (unsigned long long)value % 1000);
	else
		buf_printf(b, "\"} %llu\n", (unsigned long long)value);
}

/* What is not known is left out: 0 would be a lie. A family without a sample
 * is left out, too. */
static void
write_identity_family(struct buf *b, const struct identity_family *f,
    const struct control_metrics *m)
{
	bool begun = false;

	for (size_t i = 0; i < m->nidentities; i++) {
		const struct control_identity_usage *u = &m->identities[i];

		if (f->known != ALWAYS &&
		    !*(const bool *)((const char *)u + f->known))
			continue;
		if (!begun)
			write_head(b, f->name, f->help, f->type);
		begun = true;
		write_identity(b, f, u);
	}
}

void
metrics_write_broker(struct buf *b, const struct control_metrics *m)
{
	static const char *const loggers[] = { "execd-broker",
		"execd-frontend" };
	const uint64_t lost[] = { m->log_lost, log_output_queue()->ever_lost };

	write_series(b, families, nitems(families), m);
	write_gauge(b, "execd_audit_failing",
	    "1 while a destination of the audit log cannot be written.",
	    m->record_failing);
	write_head(b, "execd_audit_lag_seconds",
	    "For how long the oldest record has waited to be written.",
	    "gauge");
	buf_printf(b, "execd_audit_lag_seconds %llu.%03llu\n",
	    (unsigned long long)m->audit_lag_ms / 1000,
	    (unsigned long long)m->audit_lag_ms % 1000);
	write_head(b, "execd_log_lines_lost_total",
	    "Lines of a program's log that nobody read in time.", "counter");
	write_labelled(b, "execd_log_lines_lost_total", "program", loggers,
	    lost, nitems(lost));
	write_head(b, "execd_build_info", "The version.", "gauge");
	buf_puts(b, "execd_build_info{version=\"" EXECD_VERSION "\"} 1\n");
	write_gauge(b, "execd_drained",
	    "1 while the operator lets no new session open.", m->drained);
	if (m->certificate_end > 0)
		write_gauge(b, "execd_certificate_expiry_timestamp_seconds",
		    "When the first server certificate expires, in seconds "
		    "since 1970.",
		    m->certificate_end);
	write_expiry(b, "execd_certificate_expiry_seconds",
	    "Seconds until the first server certificate expires; 0 if it has.",
	    m->certificate_end);
	write_expiry(b, "execd_crl_expiry_seconds",
	    "Seconds until the first revocation list expires; 0 if it has.",
	    m->crl_end);
	write_exited(b, m->exited);
	write_histogram(b, "execd_process_start_seconds",
	    "Seconds from the request to exec.", m->start_us, m->start_us_sum);
	write_programs(
	    b, "execd_programs", "Processes of execd itself now.", m->programs);
	write_programs(b, "execd_resident_memory_bytes",
	    "Memory of execd's processes; an estimate for very many runners.",
	    m->memory_bytes);
	for (size_t i = 0; i < nitems(identity_families); i++)
		write_identity_family(b, &identity_families[i], m);
	write_gauge(b, "execd_identities_left_out",
	    "Identities that are not among those with series of their own.",
	    m->identities_left_out);
}
