/* SPDX-License-Identifier: ISC */
/*
 * group_limits: what is left for the host, and what no group here can hold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cgroup.h"
#include "group_limits.h"
#include "util.h"

#define GIB (1ull << 30)
#define MIB (1ull << 20)

static void
test_what_the_host_keeps(void **state)
{
	static const struct {
		uint64_t memory_bytes, pid_max, left_bytes;
		uint32_t tasks;
	} rows[] = {
		{ 64 * GIB, 4194304, 64 * GIB - 58982 * MIB, 3774873 },
		{ 10 * GIB, 32768, GIB, 29491 },
		{ 4 * GIB, 32768, 512 * MIB, 29491 },
		{ GIB, 32768, 512 * MIB, 29491 },
		{ 600 * MIB, 32768, 300 * MIB, 29491 },
		{ 2 * GIB + 5, 301, 512 * MIB + 5, 270 },
	};

	for (size_t i = 0; i < nitems(rows); i++) {
		struct group_limits l =
		    group_limits_of(rows[i].memory_bytes, rows[i].pid_max);

		assert_int_equal(
		    rows[i].memory_bytes - l.memory_bytes, rows[i].left_bytes);
		assert_int_equal(l.tasks, rows[i].tasks);
		assert_int_equal(l.cpu_percent + l.cpu_weight + l.io_weight, 0);
	}
}

static void
test_this_host(void **state)
{
	struct group_limits l = group_limits_of_host();

	assert_true(l.memory_bytes > 0 && l.tasks > 0);
	assert_int_equal(l.memory_bytes % MIB, 0);
}

static void
test_what_is_set_stays(void **state)
{
	const struct group_limits below = { 5, 6, 7, 8, 9 };
	struct group_limits l;

	group_limits_init(&l);
	assert_int_equal(group_limits_set(&l), 0);
	l.memory_bytes = 0;
	assert_int_equal(group_limits_set(&l), CGROUP_COUNTS_MEMORY);
	l.tasks = 3;
	assert_int_equal(
	    group_limits_set(&l), CGROUP_COUNTS_MEMORY | CGROUP_COUNTS_PIDS);
	group_limits_fill(&l, &below);
	assert_int_equal(l.memory_bytes, 0);
	assert_int_equal(l.tasks, 3);
	assert_int_equal(l.cpu_percent, 7);
	assert_int_equal(l.cpu_weight, 8);
	assert_int_equal(l.io_weight, 9);
}

static void
test_what_no_group_holds(void **state)
{
	struct group_limits l = { .memory_bytes = 1, .io_weight = 1 };

	group_limits_learn(CGROUP_COUNTS_MEMORY);
	assert_true(group_limits_check("[identity a]", &l) < 0);
	group_limits_learn(CGROUP_COUNTS_MEMORY | CGROUP_COUNTS_IO);
	assert_int_equal(group_limits_check("[identity a]", &l), 0);
	l.tasks = 1;
	assert_true(group_limits_check("[identity a]", &l) < 0);
	l = (struct group_limits){ 0 };
	group_limits_learn(0);
	assert_int_equal(group_limits_check("[identity a]", &l), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_the_host_keeps),
		cmocka_unit_test(test_this_host),
		cmocka_unit_test(test_what_is_set_stays),
		cmocka_unit_test(test_what_no_group_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
