/* SPDX-License-Identifier: ISC */
/*
 * Limits the memory that malloc keeps (mallopt(3), malloc_trim(3)).
 */
#include "heap.h"

#include <event2/event.h>
#include <malloc.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "base.h"

/* Larger blocks are mappings of their own, which free() returns at once. */
#define MAPPED_BYTES (1 << 20)
#define KEPT_BYTES   (8 << 20)

/* The kernel keeps stack pages that were touched once. This much is returned
 * below the part in use and one more page; the kernel maps nothing else so
 * close to a stack (stack_guard_gap in its documentation). */
#define STACK_BYTES (512u << 10)

/* The kernel maps nothing else within this distance of the stack's top
 * (gap_min of mmap_base() in its arch/x86/mm/mmap.c). */
#define STACK_REACH (64u << 20)

#define SCRATCHES_MAX 5

/* Nobody who waits for a person's next key, or for the next command of a
 * program that thinks, notices the page faults that come after such a pause. */
#define PAUSE_US 200000

static struct {
	void *p;
	size_t n;
} scratches[SCRATCHES_MAX];
static struct event *timer;
static bool armed, busy, timer_turn;

static void
arm(void)
{
	static const struct timeval pause = { .tv_usec = PAUSE_US };

	armed = evtimer_add(timer, &pause) == 0;
}

/*
 * Only the process's first stack: a helper of a sandbox runs on a static
 * buffer, and the program's own data lies below that. The kernel puts the bytes
 * of AT_RANDOM at the top of the first stack (getauxval(3)).
 */
static void
give_back_stack(void)
{
	const uintptr_t page = HEAP_PAGE_BYTES;
	uintptr_t top = getauxval(AT_RANDOM);
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	uintptr_t end = (frame & ~(page - 1)) - page;

	if (frame < top && top - frame < STACK_REACH)
		madvise(
		    (void *)(end - STACK_BYTES), STACK_BYTES, MADV_DONTNEED);
}

static void
give_back(void)
{
	malloc_trim(0);
	give_back_stack();
	for (size_t i = 0; i < SCRATCHES_MAX && scratches[i].p != NULL; i++)
		madvise(scratches[i].p, scratches[i].n, MADV_DONTNEED);
}

static void
timer_cb(evutil_socket_t fd, short what, void *arg)
{
	armed = false;
	timer_turn = true;
	if (busy)
		arm();
	else
		give_back();
	busy = false;
}

void
heap_init(struct event_base *base)
{
	mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	timer = evtimer_new(base, timer_cb, NULL);
}

void
heap_scratch(void *p, size_t n)
{
	size_t i = 0;

	while (
	    i < SCRATCHES_MAX && scratches[i].p != NULL && scratches[i].p != p)
		i++;
	if (i == SCRATCHES_MAX)
		return;
	scratches[i].p = p;
	scratches[i].n = n;
}

void
heap_turn(void)
{
	if (timer_turn) {
		timer_turn = false;
		return;
	}
	busy = true;
	if (!armed && timer != NULL)
		arm();
}
