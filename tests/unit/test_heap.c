/* SPDX-License-Identifier: ISC */
/*
 * heap: what a program used while it was busy is given back when it has been
 * idle for a second, and not before.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>
#include <event2/event.h>

#include "heap.h"
#include "util.h"

#define SCRATCH_BYTES (64u << 10)

static heap_aligned uint8_t scratch[SCRATCH_BYTES];
static heap_aligned uint8_t other[SCRATCH_BYTES];
static struct event_base *base; /* a program has one */

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
work(void)
{
	event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	memset(scratch, 'x', sizeof(scratch));
	memset(other, 'x', sizeof(other));
	heap_turn();
}

static void
test_scratches(void **state)
{
	int64_t began = now_ms();

	for (int i = 0; i < 3; i++)
		heap_scratch(scratch, sizeof(scratch));
	heap_scratch(other, sizeof(other));
	work();
	assert_true(is_kept(scratch) && is_kept(other));
	while (is_kept(scratch)) {
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
		heap_turn();
	}
	assert_true(is_given_back(scratch) && is_given_back(other));
	assert_true(now_ms() - began >= 180);
	work();
	assert_true(is_kept(scratch) && is_kept(other));
}

/* Waits on a stack of its own until memory was given back. */
static int
idle(void *arg)
{
	memset(scratch, 'x', sizeof(scratch));
	heap_turn();
	while (is_kept(scratch)) {
		event_base_loop(base, EVLOOP_ONCE);
		heap_turn();
	}
	return 0;
}

/* Below a stack that is a static buffer lies the program's own data. */
static void
test_a_stack_of_its_own(void **state)
{
	enum { BELOW = 1 << 20, STACK = 256 << 10 };
	static heap_aligned uint8_t memory[BELOW + STACK];
	int status;
	pid_t pid;

	heap_scratch(scratch, sizeof(scratch));
	memset(memory, 'x', BELOW);
	pid = clone(idle, memory + sizeof(memory),
	    CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (size_t i = 0; i < BELOW; i++)
		assert_int_equal(memory[i], 'x');
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scratches),
		cmocka_unit_test(test_a_stack_of_its_own) };

	base = event_base_new();
	heap_init(base);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
