/* SPDX-License-Identifier: ISC */
/*
 * heap: what a program used while it was busy is given back when it has been
 * idle for a second, and not before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <event2/event.h>

#include "heap.h"
#include "util.h"

#define SCRATCH_BYTES (64u << 10)

static heap_aligned uint8_t scratch[SCRATCH_BYTES];
static heap_aligned uint8_t other[SCRATCH_BYTES];

/* What was given back reads as zero. */
static bool
is_kept(const uint8_t *p)
{
	return p[0] == 'x' && p[SCRATCH_BYTES - 1] == 'x';
}

static bool
is_given_back(const uint8_t *p)
{
	return p[0] == 0 && p[SCRATCH_BYTES - 1] == 0;
}

/* A turn in which something happened. */
static void
work(struct event_base *base)
{
	event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	memset(scratch, 'x', sizeof(scratch));
	memset(other, 'x', sizeof(other));
	heap_turn();
}

static void
test_scratches(void **state)
{
	struct event_base *base = event_base_new();
	int64_t began = now_ms();

	heap_init(base);
	for (int i = 0; i < 3; i++)
		heap_scratch(scratch, sizeof(scratch));
	heap_scratch(other, sizeof(other));
	work(base);
	assert_true(is_kept(scratch) && is_kept(other));
	while (is_kept(scratch)) {
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
		heap_turn();
	}
	assert_true(is_given_back(scratch) && is_given_back(other));
	assert_true(now_ms() - began >= 180);
	work(base);
	assert_true(is_kept(scratch) && is_kept(other));
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scratches) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
