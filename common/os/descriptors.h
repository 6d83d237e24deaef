/* SPDX-License-Identifier: ISC */
/*
 * The limit on open descriptors. A program raises its own limit as far as it
 * may. Programs that it executes get the old limit back, because users of
 * select(2) depend on it.
 */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include <stdint.h>

/* Raises the soft limit (setrlimit(2)) to `wanted`, or to the hard limit if
 * that is lower. Returns the soft limit that is now in force, or 0 on error. */
uint64_t descriptors_raise(uint64_t wanted);

/* Called in a child before exec. Restores the limits from before the first
 * raise. Safe after vfork(2). */
void descriptors_restore(void);

#endif
