/* SPDX-License-Identifier: ISC */
/*
 * How many descriptors this program may have open. Its own limit is raised as
 * far as it may be; what it executes gets the one that it was started with
 * (programs that use select(2) count on that).
 */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include <stdint.h>

/* Raises the soft limit (setrlimit(2)) to `wanted`, or as near as the hard one
 * lets it. Returns what it is now. */
uint64_t descriptors_raise(uint64_t wanted);

/* In a child, before exec: the soft limit as it was before the first raise.
 * Safe after vfork(2). */
void descriptors_restore(void);

#endif
