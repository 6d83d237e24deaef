/* SPDX-License-Identifier: ISC */
/*
 * The limit on open descriptors, and a reserve of them. A program raises its
 * own limit as far as it may. Programs that it executes get the old limit back,
 * because users of select(2) depend on it.
 */
#pragma once

#include <stdint.h>

/* Raises the soft limit (setrlimit(2)) to `wanted`, or to the hard limit if
 * that is lower. Returns the soft limit that is now in force, or 0 on error. */
uint64_t descriptors_raise(uint64_t wanted);

/* Called in a child before exec. Restores the limits from before the first
 * raise. Safe after vfork(2). */
void descriptors_restore(void);

/* Raises the soft limit of a program that starts commands as far as it may.
 * descriptors_soft() returns the one from before, or that of now. */
void descriptors_raise_all(void);
uint64_t descriptors_soft(void);

/*
 * Returns the most descriptors that a command of this program may have, less
 * than half of its own. The kernel counts descriptors that are on their way
 * through sockets for each user, against the soft limit of the process that
 * sends: with as many as this program, a command could keep it from sending
 * any.
 */
uint64_t descriptors_of_commands(void);

/* Like descriptors_restore(), in a child that becomes such a command. Its hard
 * limit is descriptors_of_commands(). Returns 0 or -errno. */
int descriptors_restrict(void);

/*
 * Reserves n descriptors, at most RESERVE_MAX, for operations that must not
 * fail for lack of one, however many are used otherwise. Called once; before
 * that, the functions below do nothing.
 */
#define RESERVE_MAX 32
void reserve_begin(unsigned n);

/* Closes up to n reserved descriptors, so that as many can be opened. */
void reserve_give(unsigned n);

/* Reserves again what was given, as far as descriptors are available. */
void reserve_keep(void);
