/* SPDX-License-Identifier: ISC */
/*
 * The metrics of the broker.
 */
#include <stddef.h>
#include <time.h>

#include "metrics.h"
#include "util.h"

static const struct family {
	const char *name, *help, *type, *label;
	size_t offset;
} families[] = {
#define FAMILY(name, help, type, label, member)                                \
	{                                                                      \
		"execd_" name, help, type, label,                              \
		    offsetof(struct control_metrics, member)                   \
	}
	FAMILY("open_sessions", "Sessions now.", "gauge",
	    "{state=\"attached\"}", attached),
	FAMILY("open_sessions", NULL, NULL, "{state=\"detached\"}", detached),
	FAMILY("open_sessions", NULL, NULL, "{state=\"ending\"}", ending),
	FAMILY("processes", "Commands that run now.", "gauge", "", processes),
	FAMILY("processes_started_total", "Commands that were started.",
	    "counter", "", started),
	FAMILY("sandbox_denials_total",
	    "Commands that failed, probably because of their sandbox.",
	    "counter", "", denied),
	FAMILY("output_bytes_total",
	    "Bytes that commands had written when they exited.", "counter", "",
	    output_bytes),
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

	metrics_head(b, name, help, "gauge");
	for (size_t i = 0; i < PROGRAMS; i++)
		buf_printf(b, "%s{program=\"%s\"} %llu\n", name, programs[i],
		    (unsigned long long)values[i]);
}

static void
write_exited(struct buf *b, const uint64_t *exited)
{
	static const char name[] = "execd_processes_exited_total";

	metrics_head(b, name, "Commands that have exited, by what ended them.",
	    "counter");
	for (unsigned i = 0; i < END_CAUSES; i++)
		buf_printf(b, "%s{by=\"%s\"} %llu\n", name,
		    i == END_ITSELF ? "itself" : control_cause_name(i),
		    (unsigned long long)exited[i]);
}

/* Writes nothing if nothing can expire. */
static void
write_expiry(struct buf *b, const char *name, const char *help, uint64_t end)
{
	struct timespec now;
	long long left;

	if (end == 0)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	left = (long long)end - now.tv_sec;
	metrics_head(b, name, help, "gauge");
	buf_printf(b, "%s %lld\n", name, left > 0 ? left : 0);
}

void
metrics_write_broker(struct buf *b, const struct control_metrics *m)
{
	for (size_t i = 0; i < nitems(families); i++) {
		const struct family *f = &families[i];
		const uint64_t *value =
		    (const void *)((const char *)m + f->offset);

		if (f->help != NULL)
			metrics_head(b, f->name, f->help, f->type);
		buf_printf(b, "%s%s %llu\n", f->name, f->label,
		    (unsigned long long)*value);
	}
	metrics_head(b, "execd_audit_failing",
	    "1 while a destination of the audit log cannot be written.",
	    "gauge");
	buf_printf(b, "execd_audit_failing %d\n", m->record_failing);
	write_expiry(b, "execd_certificate_expiry_seconds",
	    "Seconds until the first server certificate expires; 0 if it has.",
	    m->certificate_end);
	write_expiry(b, "execd_crl_expiry_seconds",
	    "Seconds until the first revocation list expires; 0 if it has.",
	    m->crl_end);
	write_exited(b, m->exited);
	metrics_histogram(b, "execd_process_start_seconds",
	    "Seconds from the request to exec.", m->start_us, m->start_us_sum);
	write_programs(
	    b, "execd_programs", "Processes of execd itself now.", m->programs);
	write_programs(b, "execd_resident_memory_bytes",
	    "Memory of execd's processes; an estimate for very many runners.",
	    m->memory_bytes);
}
