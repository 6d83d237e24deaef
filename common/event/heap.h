/* SPDX-License-Identifier: ISC */
/*
 * Controls how much memory malloc and the stack keep. While there is work they
 * keep everything, because buffers come and go with every message, and faulting
 * pages in again costs more than filling them. After 200 to 400 ms without work
 * the memory is returned to the kernel: thousands of idle sessions must not
 * each hold the memory of their busiest moment.
 */
#pragma once

#include <stddef.h>

struct event_base;

/* Call before the first large allocation. `base` must live until the program
 * ends. */
void heap_init(struct event_base *base);

/* The page size, which is the unit in which memory is shared and returned.
 * Large buffers are aligned to it, so that small variables lie together. */
#define HEAP_PAGE_BYTES 4096
#define heap_aligned	__attribute__((aligned(HEAP_PAGE_BYTES)))

/* Registers a static buffer, declared heap_aligned, whose contents are not
 * needed after the current turn of the event loop. Its memory is returned as
 * well. Registering a buffer twice is harmless. */
void heap_scratch(void *p, size_t n);

/* Call after every turn of the event loop. */
void heap_turn(void);
