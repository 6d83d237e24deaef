/*
 * After a runner that was killed: what its session left on the disk in place
 * of missing names is taken away by a process of its user.
 */
#ifndef SWEEP_H
#define SWEEP_H

struct monitor;
struct identity;

/* Starts it and waits for nothing. list: what the runner handed over, opaque
 * here; the caller's to close. A failure is logged. */
void sweep_start(const struct monitor *m, const struct identity *id, int list);

#endif
