/* SPDX-License-Identifier: ISC */
/*
 * After a runner that was killed: what its session left on the disk in place
 * of missing names is taken away by a process of its user.
 */
#ifndef CLEANUP_H
#define CLEANUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "order.h"

/* Starts it and waits for nothing. list: what the runner handed over, opaque
 * here; the caller's to close. A failure is logged. */
void cleanup_start(int program, const struct spawn_order *o, int list);

/* Is it one of them? */
bool cleanup_has(pid_t pid);

/* Takes leave of all that ended. */
void cleanup_reap_all(void);

struct saved;
void cleanup_save(struct saved *s);

#endif
