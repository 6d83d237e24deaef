/*
 * After a runner that was killed: what its session left on the disk in place
 * of missing names is taken away by a process of its user.
 */
#ifndef SWEEP_H
#define SWEEP_H

#include <stdbool.h>
#include <sys/types.h>

struct monitor;
struct identity;

/* Starts it and waits for nothing. list: what the runner handed over, opaque
 * here; the caller's to close. A failure is logged. */
void sweep_start(const struct monitor *m, const struct identity *id, int list);

/* Is it one of them? Did one of them end? */
bool sweep_has(pid_t pid);
bool sweep_reap(pid_t pid);

/* Takes leave of all that ended, for who waits for no other child. */
void sweep_reap_all(void);

#endif
