/* SPDX-License-Identifier: ISC */
/*
 * Descriptors that the runner reserves for operations that must not fail for
 * lack of one, however many its processes use: commands of the broker that
 * bring a descriptor, and killing.
 */
#ifndef RESERVE_H
#define RESERVE_H

/* Descriptors needed at once to find processes and kill them. */
#define RESERVE_TO_KILL 3

/*
 * Reserves the descriptors; called once. Before that, the functions below do
 * nothing.
 */
void reserve_begin(void);

/* Closes up to n reserved descriptors, so that as many can be opened. */
void reserve_give(unsigned n);

/* Reserves again what was given, as far as descriptors are available. */
void reserve_keep(void);

#endif
