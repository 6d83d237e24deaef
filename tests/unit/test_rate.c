/* SPDX-License-Identifier: ISC */
/*
 * rate: never more than a second's worth ahead of the time, and never less
 * than what was promised.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rate.h"

static void
test_none(void **state)
{
	struct rate r;

	rate_init(&r, 0, 5);
	rate_spend(&r, SIZE_MAX / 4);
	assert_true(rate_permits(&r, 5));
}

static void
test_overdrawn(void **state)
{
	struct rate r;

	rate_init(&r, 1000, 0);
	assert_true(rate_permits(&r, 0));
	rate_spend(&r, 3000);
	assert_false(rate_permits(&r, 0));
	assert_int_equal(rate_wait_ms(&r), 2002);
	assert_false(rate_permits(&r, 2000));
	assert_true(rate_permits(&r, 2001));
}

/* A long silence saves up one second, not more. */
static void
test_full(void **state)
{
	struct rate r;

	rate_init(&r, 1000, 0);
	assert_true(rate_permits(&r, INT64_C(1) << 40));
	rate_spend(&r, 1000);
	assert_false(rate_permits(&r, INT64_C(1) << 40));
}

/* Read by read, as long as it permits: what comes out in ten minutes. */
static void
test_total(void **state)
{
	static const uint64_t rates[] = { 65536, 100001, 1 << 20,
		UINT64_C(1) << 40 };

	for (size_t i = 0; i < 4; i++) {
		uint64_t total = 0, promised = rates[i] * 600;
		struct rate r;
		int64_t now = 1000, end = now + 600000;

		rate_init(&r, rates[i], now);
		while (now < end) {
			if (rate_permits(&r, now)) {
				size_t n = rates[i] > 65536
					       ? (size_t)rates[i] / 7
					       : 65536;

				rate_spend(&r, n);
				total += n;
			} else {
				now += (int64_t)rate_wait_ms(&r);
			}
		}
		assert_true(total >= promised - promised / 50);
		assert_true(total <= promised + 2 * rates[i] + 65536);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_overdrawn),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_total),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
