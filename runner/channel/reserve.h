/* SPDX-License-Identifier: ISC */
/*
 * Descriptors that the runner keeps for what must not fail for want of one,
 * however many its commands take: orders that bring one, and killing.
 */
#ifndef RESERVE_H
#define RESERVE_H

/* To look for processes and to kill them takes so many at once. */
#define RESERVE_TO_KILL 3

/* Once; before that there is none, and what follows does nothing. */
void reserve_begin(void);

/* Closes up to n of those kept: so many can be opened now. */
void reserve_give(unsigned n);

/* Takes again what was given, as far as there are descriptors. */
void reserve_keep(void);

#endif
