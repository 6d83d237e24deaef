/* SPDX-License-Identifier: ISC */
/*
 * What malloc and the stack keep: while there is work, everything; when there
 * was none for a second, nothing. Buffers come and go with every message, and
 * faulting their pages in anew costs more than filling them; but thousands of
 * idle sessions must not each hold what their busiest moment took.
 */
#ifndef HEAP_H
#define HEAP_H

#include <stddef.h>

struct event_base;

/* Before the first large allocation. The base must outlive the program. */
void heap_init(struct event_base *base);

/* What processes share, and so the unit of what is given back. Large buffers
 * are aligned to it, so that small variables lie together. */
#define HEAP_PAGE_BYTES 4096
#define heap_aligned	__attribute__((aligned(HEAP_PAGE_BYTES)))

/* A static buffer, heap_aligned, in which nothing lives from one turn of the
 * loop to the next: it is given back as well. Again is as good as once. */
void heap_scratch(void *p, size_t n);

/* After every turn of the loop. */
void heap_turn(void);

#endif
