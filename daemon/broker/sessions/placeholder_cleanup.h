/* SPDX-License-Identifier: ISC */
/*
 * The cleanup after a killed runner. A process of the session's user removes
 * the placeholders that the session left on the disk.
 */
#ifndef PLACEHOLDER_CLEANUP_H
#define PLACEHOLDER_CLEANUP_H

#include <stdbool.h>
#include <sys/types.h>

struct identity;

/* Starts a process and does not wait for it. `list` is the runner's list of
 * placeholders, which stays the caller's. A failure is logged. */
void placeholder_cleanup(const struct identity *id, int list);

/* A program has ended. Returns false if it is no such process. */
bool placeholder_cleanup_reap(pid_t pid);

#endif
