/*
 * How many descriptors the monitor may have, and how many sessions that is
 * enough for. A descriptor that arrives and finds no place is lost, so the
 * last ones are not given to sessions.
 */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include <stdint.h>

/* Takes as many as the hard limit allows (getrlimit(2)). */
void descriptors_raise(void);

/* In a child, before it executes a runner: what execd was started with.
 * Commands that use select(2) know no more than 1024. */
void descriptors_restore(void);

/* So many sessions find a place. */
uint32_t descriptors_sessions(void);

#endif
