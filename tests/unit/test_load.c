/* SPDX-License-Identifier: ISC */
/*
 * load: how much a host can take, as a proxy's agent check is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker_health.h"
#include "util.h"

static void
test_room(void **state)
{
	static const struct {
		size_t places, used;
		unsigned pressure;
		uint8_t room;
	} rows[] = {
		{ 100, 0, 0, 100 },
		{ 100, 25, 0, 75 },
		{ 100, 25, 60, 40 }, /* the lesser of the two */
		{ 100, 90, 60, 10 },
		{ 100, 99, 0, 1 },
		{ 10000, 9999, 0, 1 }, /* 0 would mean: nobody new */
		{ 100, 0, 100, 1 },
		{ 100, 100, 0, 0 },
		{ 100, 101, 0, 0 }, /* after a reload with fewer */
		{ 1, 0, 0, 100 },
		{ 0, 0, 0, 0 },
	};

	for (size_t i = 0; i < nitems(rows); i++)
		assert_int_equal(
		    load_room(rows[i].places, rows[i].used, rows[i].pressure),
		    rows[i].room);
}

static void
test_pressure(void **state)
{
	static const struct {
		const char *text;
		unsigned percent;
	} rows[] = {
		{ "some avg10=0.00 avg60=53.81 avg300=63.28 total=4\n", 0 },
		{ "some avg10=27.56 avg60=0.00 avg300=0.00 total=0\n", 28 },
		{ "some avg10=27.00 avg60=0.00 avg300=0.00 total=0\n", 27 },
		{ "some avg10=99.99 avg60=0.00 avg300=0.00 total=0\n", 100 },
		{ "some avg10=100.00 avg60=0.00 avg300=0.00 total=0\n", 100 },
		{ "full avg10=27.56 avg60=0.00 avg300=0.00 total=0\n", 0 },
		{ "", 0 },
		{ "some avg10=", 0 },
	};

	for (size_t i = 0; i < nitems(rows); i++)
		assert_int_equal(load_pressure(rows[i].text), rows[i].percent);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_pressure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
