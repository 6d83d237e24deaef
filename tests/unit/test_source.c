/* SPDX-License-Identifier: ISC */
/*
 * source: caps and penalties of each source, what is one source and what is
 * exempt, and that what is remembered has an end.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include <cmocka.h>

#include "source.h"
#include "util.h"

static const struct frontend_limits rules = {
	.max_per_source = 3,
	.penalty_auth_ms = 5000,
	.penalty_deadline_ms = 10000,
	.penalty_protocol_ms = 1000,
	.penalty_crash_ms = 20000,
	.penalty_threshold_ms = 15000,
	.penalty_max_ms = 60000,
	/* 127.0.0.0/8, 2001:db8::/33 */
	.exempt = { { { [10] = 0xff, 0xff, 127, [16] = 104 },
			{ 0x20, 0x01, 0x0d, 0xb8, [16] = 33 } },
	    2 },
};

static enum admission
admit(const char *address, int64_t now, struct source **s)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in in = { .sin_family = AF_INET };
	int64_t wait_ms;

	if (inet_pton(AF_INET, address, &in.sin_addr) == 1)
		return source_admit(
		    &rules, (struct sockaddr *)&in, now, s, &wait_ms);
	assert_int_equal(inet_pton(AF_INET6, address, &in6.sin6_addr), 1);
	return source_admit(&rules, (struct sockaddr *)&in6, now, s, &wait_ms);
}

static void
test_connections(void **state)
{
	struct source *s[4], *other;

	for (size_t i = 0; i < 3; i++)
		assert_int_equal(admit("192.0.2.1", 0, &s[i]), ADMITTED);
	assert_ptr_equal(s[0], s[2]);
	assert_int_equal(admit("192.0.2.1", 0, &s[3]), REFUSED_CONNECTIONS);
	assert_null(s[3]);
	assert_int_equal(admit("192.0.2.2", 0, &other), ADMITTED);
	source_leave(s[0], 0);
	assert_int_equal(admit("192.0.2.1", 0, &s[3]), ADMITTED);
	source_leave(s[1], 0);
	source_leave(s[2], 0);
	source_leave(s[3], 0);
	source_leave(other, 0);
	assert_int_equal(source_count(), 0);
}

/* One is enough. */
static void
test_a_crash(void **state)
{
	struct source *s;

	assert_int_equal(admit("192.0.2.9", 1000, &s), ADMITTED);
	assert_true(source_penalise(&rules, s, OFFENCE_CRASH, 1000));
	source_leave(s, 1000);
	assert_int_equal(admit("192.0.2.9", 5000, &s), REFUSED_PENALTY);
	assert_int_equal(admit("192.0.2.9", 6000, &s), ADMITTED);
	source_leave(s, 30000);
}

static void
test_penalties(void **state)
{
	struct source *s;

	/* Four of 5 s are more than 15 s; time goes by meanwhile. */
	for (int i = 0; i < 4; i++) {
		assert_int_equal(admit("192.0.2.1", 1000, &s), ADMITTED);
		assert_int_equal(
		    source_penalise(&rules, s, OFFENCE_AUTHENTICATION, 1000),
		    i == 3 ? 20000 : 0);
		source_leave(s, 1000);
	}
	assert_int_equal(admit("192.0.2.1", 1000, &s), REFUSED_PENALTY);
	assert_int_equal(admit("192.0.2.1", 5999, &s), REFUSED_PENALTY);
	assert_int_equal(admit("192.0.2.1", 6000, &s), ADMITTED);
	source_leave(s, 6000);
	assert_int_equal(source_count(), 1);
	/* Once it is over, it is forgotten at the next chance. */
	assert_int_equal(admit("192.0.2.9", 30000, &s), ADMITTED);
	source_leave(s, 30000);
	assert_int_equal(source_count(), 0);
}

static void
test_the_most_there_is(void **state)
{
	struct source *s, *again;

	assert_int_equal(admit("192.0.2.1", 0, &s), ADMITTED);
	for (int i = 0; i < 1000; i++)
		source_penalise(&rules, s, OFFENCE_DEADLINE, 0);
	assert_int_equal(admit("192.0.2.1", 44999, &again), REFUSED_PENALTY);
	assert_int_equal(admit("192.0.2.1", 45000, &again), ADMITTED);
	source_leave(again, 45000);
	source_leave(s, 60000);
	assert_int_equal(source_count(), 0);
}

/* What one customer gets is one source. */
static void
test_what_is_one_source(void **state)
{
	struct source *a, *b, *c, *v4;

	assert_int_equal(admit("2001:db9:0:1::1", 0, &a), ADMITTED);
	assert_int_equal(admit("2001:db9:0:1:ffff::2", 0, &b), ADMITTED);
	assert_int_equal(admit("2001:db9:0:2::1", 0, &c), ADMITTED);
	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, c);
	assert_int_equal(admit("192.0.2.1", 0, &v4), ADMITTED);
	source_leave(v4, 0);
	assert_int_equal(admit("::ffff:192.0.2.1", 0, &v4), ADMITTED);
	source_leave(a, 0);
	source_leave(b, 0);
	source_leave(c, 0);
	source_leave(v4, 0);
}

static void
test_exempt(void **state)
{
	static const struct {
		const char *address;
		bool exempt;
	} cases[] = {
		{ "127.0.0.1", true },
		{ "127.255.255.255", true },
		{ "128.0.0.1", false },
		{ "::ffff:127.0.0.1", true },
		{ "2001:db8:7fff::1", true },
		{ "2001:db8:8000::1", false },
		{ "2001:db9::1", false },
	};
	struct source *s;

	for (size_t i = 0; i < nitems(cases); i++) {
		assert_int_equal(admit(cases[i].address, 0, &s), ADMITTED);
		assert_int_equal(s == NULL, cases[i].exempt);
		assert_false(
		    source_penalise(&rules, NULL, OFFENCE_PROTOCOL, 0));
		source_leave(s, 0);
	}
}

static void
test_a_unix_socket_is_no_source(void **state)
{
	const struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct source *s;
	int64_t wait_ms;

	assert_int_equal(
	    source_admit(&rules, (const struct sockaddr *)&un, 0, &s, &wait_ms),
	    ADMITTED);
	assert_null(s);
}

/* Somebody with many addresses cannot fill the memory. */
static void
test_many_sources(void **state)
{
	char address[64];
	struct source *s;

	for (unsigned i = 0; i < SOURCES_MAX + 1000; i++) {
		snprintf(address, sizeof(address), "2a00:%x:%x::1", i >> 16,
		    i & 0xffff);
		assert_int_equal(admit(address, 0, &s), ADMITTED);
		source_penalise(&rules, s, OFFENCE_DEADLINE, 0);
		source_leave(s, 0);
	}
	assert_int_equal(source_count(), SOURCES_MAX);
	assert_int_equal(admit("192.0.2.1", 10001, &s), ADMITTED);
	assert_int_equal(source_count(), 1);
	source_leave(s, 10001);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connections),
		cmocka_unit_test(test_penalties),
		cmocka_unit_test(test_a_crash),
		cmocka_unit_test(test_the_most_there_is),
		cmocka_unit_test(test_what_is_one_source),
		cmocka_unit_test(test_exempt),
		cmocka_unit_test(test_a_unix_socket_is_no_source),
		cmocka_unit_test(test_many_sources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
