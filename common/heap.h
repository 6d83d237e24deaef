/*
 * What malloc and the stack keep: while there is work, everything; when there
 * was none for a second, nothing. Buffers come and go with every message, and
 * faulting their pages in anew costs more than filling them; but thousands of
 * idle sessions must not each hold what their busiest moment took.
 */
#ifndef HEAP_H
#define HEAP_H

struct event_base;

/* Before the first large allocation. The base must outlive the program. */
void heap_init(struct event_base *base);

/* After every turn of the loop. */
void heap_turn(void);

#endif
