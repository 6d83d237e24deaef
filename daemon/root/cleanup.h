/* SPDX-License-Identifier: ISC */
/*
 * The cleanup after a killed runner. A process of the session's user removes
 * the placeholders that the session left on the disk.
 */
#ifndef CLEANUP_H
#define CLEANUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "spawn_user.h"

/* Starts a process and does not wait for it. `list` is the runner's list of
 * placeholders; it is not read here, and stays the caller's. A failure is
 * logged. */
void cleanup_start(int program, const struct spawn_user *o, int list);

/* Tells whether it is such a process. */
bool cleanup_has(pid_t pid);

/* Reaps all that ended. */
void cleanup_reap_all(void);

struct saved;
void cleanup_save(struct saved *s);

#endif
