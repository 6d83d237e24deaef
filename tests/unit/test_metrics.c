/* SPDX-License-Identifier: ISC */
/*
 * metrics: what is said of each identity, in the text format of Prometheus.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "metrics.h"
#include "util.h"

#define HEAD(name, help, type)                                                 \
	"# HELP " name " " help "\n# TYPE " name " " type "\n"
#define SESSIONS                                                               \
	HEAD("execd_identity_sessions", "Sessions of each identity now.",      \
	    "gauge")
#define CPU                                                                    \
	HEAD("execd_identity_cpu_seconds_total",                               \
	    "Processor time of sessions, also of those that have ended.",      \
	    "counter")
#define MEMORY                                                                 \
	HEAD("execd_identity_memory_bytes", "Memory of all sessions now.",     \
	    "gauge")
#define DENIALS                                                                \
	HEAD("execd_identity_denials_total",                                   \
	    "Credentials and sessions that were refused, and what sandboxes "  \
	    "and lists of hosts denied to commands.",                          \
	    "counter")
#define LEFT_OUT                                                               \
	HEAD("execd_identities_left_out",                                      \
	    "Identities that are not among those with series of their own.",   \
	    "gauge")                                                           \
	"execd_identities_left_out "

/* Returns the part about identities. */
static const char *
written(struct buf *b, const struct control_metrics *m)
{
	const char *at;

	buf_init(b, 64u << 10);
	metrics_write_broker(b, m);
	buf_put_u8(b, '\0');
	at = strstr((char *)b->data, "# HELP execd_ident");
	assert_non_null(at);
	return at;
}

static void
test_identities(void **state)
{
	static const struct {
		const char *text;
		uint32_t n;
		uint64_t left_out;
		struct control_identity_usage of[2];
	} rows[] = {
		{ LEFT_OUT "0\n", 0, 0, { { "", false, false, 0, 0, 0, 0 } } },
		{ SESSIONS "execd_identity_sessions{identity=\"a\"} 2\n" CPU
			   "execd_identity_cpu_seconds_total{identity=\"a\"} "
			   "61.005\n" MEMORY
			   "execd_identity_memory_bytes{identity=\"a\"} "
			   "4096\n" DENIALS
			   "execd_identity_denials_total{identity=\"a\"} "
			   "3\n" LEFT_OUT "7\n",
		    1, 7, { { "a", true, true, 2, 61005, 4096, 3 } } },
		/* What is known, and is zero, is there. */
		{ SESSIONS "execd_identity_sessions{identity=\"a\"} 0\n"
			   "execd_identity_sessions{identity=\"b\"} 1\n" CPU
			   "execd_identity_cpu_seconds_total{identity=\"b\"} "
			   "0.000\n" MEMORY
			   "execd_identity_memory_bytes{identity=\"a\"} "
			   "0\n" DENIALS
			   "execd_identity_denials_total{identity=\"a\"} "
			   "0\n"
			   "execd_identity_denials_total{identity=\"b\"} "
			   "0\n" LEFT_OUT "0\n",
		    2, 0,
		    { { "a", false, true, 0, 0, 0, 0 },
			{ "b", true, false, 1, 0, 0, 0 } } },
		{ SESSIONS "execd_identity_sessions{identity="
			   "\"a\\\"\\\\n\\nb{}=,\303\274\"} 1\n" DENIALS
			   "execd_identity_denials_total{identity="
			   "\"a\\\"\\\\n\\nb{}=,\303\274\"} 0\n" LEFT_OUT "0\n",
		    1, 0,
		    { { "a\"\\n\nb{}=,\303\274", false, false, 1, 0, 0, 0 } } },
	};

	for (size_t i = 0; i < nitems(rows); i++) {
		struct control_metrics m = { .nidentities = rows[i].n,
			.identities_left_out = rows[i].left_out };
		struct buf b;

		memcpy(m.identities, rows[i].of, sizeof(rows[i].of));
		assert_string_equal(written(&b, &m), rows[i].text);
		buf_clear(&b);
	}
}

/* An answer has room for all identities with the longest names. */
static void
test_the_most(void **state)
{
	struct control_metrics m = { .nidentities = METRICS_IDENTITIES_MAX };
	struct buf b;

	for (size_t i = 0; i < METRICS_IDENTITIES_MAX; i++) {
		struct control_identity_usage *u = &m.identities[i];

		/* Without a NUL at its end, which no broker sends. */
		memset(u->name, '"', sizeof(u->name));
		u->has_cpu = u->has_memory = true;
		u->sessions = u->cpu_ms = u->memory_bytes = UINT64_MAX;
		u->denials = UINT64_MAX;
	}
	assert_non_null(strstr(written(&b, &m), LEFT_OUT "0\n"));
	buf_clear(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identities),
		cmocka_unit_test(test_the_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
