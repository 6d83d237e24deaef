/* SPDX-License-Identifier: ISC */
/*
 * log_limit: so many lines of a source and kind, so many of all of them, and
 * every one that is left out is counted once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "log_limit.h"

static unsigned told; /* of those left out */

static unsigned
put(struct log_limit *l, uint64_t key, int64_t now, unsigned lines)
{
	unsigned own, others, n = 0;

	for (; lines > 0; lines--) {
		n += log_limit_permits(l, key, now, &own, &others);
		told += own + others;
	}
	return n;
}

static void
test_one_source(void **state)
{
	struct log_limit l = { .lines = 0 };
	unsigned own, others;

	assert_int_equal(put(&l, 1, 5000, 30), LOG_LIMIT_LINES);
	assert_int_equal(put(&l, 2, 5000, 3), 3);
	assert_int_equal(put(&l, 1, 5000 + LOG_LIMIT_MS - 1, 5), 0);
	assert_true(
	    log_limit_permits(&l, 1, 5000 + LOG_LIMIT_MS, &own, &others));
	assert_int_equal(own, 30 - LOG_LIMIT_LINES + 5);
	assert_int_equal(others, 0);
	assert_true(
	    log_limit_permits(&l, 1, 5000 + LOG_LIMIT_MS, &own, &others));
	assert_int_equal(own, 0);
}

static void
test_many_sources(void **state)
{
	struct log_limit l = { .lines = 0 };
	unsigned lines = 0, all = 0;

	told = 0;
	for (int64_t ms = 1000; ms < 6000; ms++, all++)
		lines += put(&l, (uint64_t)ms * 0x9e3779b97f4a7c15u, ms, 1);
	assert_int_equal(lines, 5 * LOG_LIMIT_ALL);
	/* What is left in the slots is told when they are used again. */
	for (uint64_t key = 0; key < LOG_LIMIT_SLOTS; key++)
		lines +=
		    put(&l, key + (1u << 20), 60000 + (int64_t)key * 1000, 1);
	lines += put(&l, 7, 200000, 1);
	assert_int_equal(lines + told, all + LOG_LIMIT_SLOTS + 1);
}

/* What is left out of others takes a line as well, of which there is one. */
static void
test_others_are_told_once_a_second(void **state)
{
	struct log_limit l = { .lines = 0 };
	unsigned own, others, lines = 0;

	for (uint64_t key = 1; key <= 200; key++)
		put(&l, key, 1000, 1);
	for (uint64_t key = 201; key <= 250; key++) {
		assert_true(log_limit_permits(&l, key, 2000, &own, &others));
		lines += others > 0;
	}
	assert_int_equal(lines, 1);
}

/* Whatever their keys have in common. */
static void
test_slots_are_not_shared(void **state)
{
	struct log_limit l = { .lines = 0 };
	unsigned lines[4] = { 0 };

	for (int64_t ms = 1000; ms < 9000; ms += 100)
		for (unsigned i = 0; i < 4; i++)
			lines[i] += put(&l, 5 + i * LOG_LIMIT_SLOTS, ms, 1);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(lines[i], LOG_LIMIT_LINES);
}

/* A flood of failures, of as many sources as it likes, hides no decision. */
static void
test_matters_are_apart(void **state)
{
	char peer[40];
	unsigned failures = 0;

	for (unsigned i = 0; i < 300; i++) {
		snprintf(peer, sizeof(peer), "websocket 127.0.%u.1:80", i);
		failures += log_permits(LOG_FAILURE, peer, "HTTP");
	}
	/* On a machine that is slow there may be more than one second. */
	assert_in_range(failures, LOG_LIMIT_ALL, 299);
	assert_true(log_permits(LOG_DECISION, peer, "penalty"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_source),
		cmocka_unit_test(test_many_sources),
		cmocka_unit_test(test_others_are_told_once_a_second),
		cmocka_unit_test(test_slots_are_not_shared),
		cmocka_unit_test(test_matters_are_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
