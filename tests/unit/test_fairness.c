/* SPDX-License-Identifier: ISC */
/*
 * fairness: nobody is kept out by what another source sends, sources take
 * turns, and the fullest one loses first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "source.h"
#include "util.h"

static struct fairness f;
static struct fair_source sources[8];
static struct fair_waiter waiters[64];
static size_t used;

static int
setup(void **state)
{
	f = (struct fairness)FAIRNESS_INITIALIZER(f);
	for (size_t i = 0; i < nitems(sources); i++)
		fair_source_init(&sources[i]);
	used = 0;
	return 0;
}

/* True: it came in at once. */
static bool
come(size_t source, size_t max)
{
	if (fairness_enter(&f, &sources[source], max))
		return true;
	fairness_wait(&f, &sources[source], &waiters[used++]);
	return false;
}

/* Whose turn it is; -1: nobody's. */
static int
next(size_t max)
{
	struct fair_waiter *w = fairness_next(&f, max);

	return w ? (int)(w->source - sources) : -1;
}

static void
test_one_source_leaves_room(void **state)
{
	size_t in = 0;

	for (size_t i = 0; i < 20; i++)
		in += come(0, 16);
	assert_int_equal(in, 8);
	assert_int_equal(f.waiting, 12);
	for (size_t i = 1; i < 5; i++)
		assert_true(come(i, 16));
	assert_int_equal(f.slots, 12);
	assert_int_equal(next(16), -1);
}

/* Each may have what is free, and there is always something free. */
static void
test_shares(void **state)
{
	for (size_t i = 0; i < 60; i++)
		come(i % 6, 8);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(sources[i].slots, 1 + (i == 0));
	assert_int_equal(next(8), -1);
	fairness_leave(&f, &sources[0]);
	assert_int_equal(next(8), 1);
	assert_int_equal(next(8), -1);
}

static void
test_turns(void **state)
{
	assert_true(come(0, 1));
	for (size_t i = 0; i < 9; i++)
		assert_false(come(1 + i / 3, 1));
	for (int i = 0; i < 9; i++) {
		fairness_leave(&f, &sources[i == 0 ? 0 : 1 + (i - 1) % 3]);
		assert_int_equal(next(1), 1 + i % 3);
		assert_int_equal(next(1), -1);
	}
	fairness_leave(&f, &sources[3]);
	assert_int_equal(next(1), -1);
	assert_int_equal(f.slots + f.waiting, 0);
}

/* Nobody overtakes the others of his source. */
static void
test_order_within_a_source(void **state)
{
	assert_true(come(0, 2));
	assert_false(come(0, 2));
	fairness_leave(&f, &sources[0]);
	assert_false(come(0, 2));
	assert_ptr_equal(fairness_next(&f, 2), &waiters[0]);
	fairness_leave(&f, &sources[0]);
	assert_ptr_equal(fairness_next(&f, 2), &waiters[1]);
}

static void
test_the_fullest(void **state)
{
	assert_null(fairness_fullest(&f));
	assert_true(come(0, 1));
	for (size_t i = 0; i < 6; i++)
		assert_false(come(i < 1 ? 1 : i < 4 ? 2 : 3, 1));
	assert_ptr_equal(fairness_fullest(&f), &waiters[1]);
	fairness_forget(&f, &waiters[1]);
	/* Two each: the one whose turn is last. */
	assert_ptr_equal(fairness_fullest(&f), &waiters[4]);
	fairness_forget(&f, &waiters[4]);
	assert_ptr_equal(fairness_fullest(&f), &waiters[2]);
	assert_int_equal(f.waiting, 4);
}

/* A reload took slots away: none is given until so many are free again. */
static void
test_fewer_slots(void **state)
{
	for (size_t i = 0; i < 4; i++)
		assert_true(come(i, 8));
	assert_false(come(4, 2));
	for (size_t i = 0; i < 2; i++) {
		fairness_leave(&f, &sources[i]);
		assert_int_equal(next(2), -1);
	}
	fairness_leave(&f, &sources[2]);
	assert_int_equal(next(2), 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_one_source_leaves_room, setup),
		cmocka_unit_test_setup(test_shares, setup),
		cmocka_unit_test_setup(test_turns, setup),
		cmocka_unit_test_setup(test_order_within_a_source, setup),
		cmocka_unit_test_setup(test_the_fullest, setup),
		cmocka_unit_test_setup(test_fewer_slots, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
