/* SPDX-License-Identifier: ISC */
/*
 * Reaps children, and makes sure that none is left at the end. The runner is
 * pid 1 of its namespace or a subreaper, so every orphan of the session becomes
 * its child.
 */
#ifndef REAPER_H
#define REAPER_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "table.h"

struct event_base;

/* Embedded in the object that wants to know the end of one child. */
struct reaper_watch {
	struct table_node node;
	pid_t pid;
	void (*ended)(struct reaper_watch *w, int wait_status,
	    const struct rusage *usage);
};

/*
 * Takes SIGCHLD over (signalfd). With `pid_namespace` the runner must be pid 1
 * (-EPERM if it is not); otherwise it becomes a subreaper. `idle` is called
 * whenever the last child was reaped. Returns 0 or -errno.
 */
int reaper_init(
    struct event_base *base, bool pid_namespace, void (*idle)(void));

void reaper_add(struct reaper_watch *w, pid_t pid,
    void (*ended)(
	struct reaper_watch *w, int wait_status, const struct rusage *usage));
void reaper_remove(struct reaper_watch *w);

/*
 * Tells whether a signal has stopped that child (SIGSTOP). Its pid is not
 * reused meanwhile, because only this file reaps it. False if it has ended.
 */
bool reaper_is_stopped(const struct reaper_watch *w);

/*
 * Tells whether that child waits in the kernel, and how often it has run so
 * far: one that has not run in between is still in the same wait.
 */
bool reaper_is_waiting(const struct reaper_watch *w, uint64_t *switches);

/* Tells whether this pid is a watched child's. */
bool reaper_is_watched(pid_t pid);

/* Tells whether there is any child, watched or orphan. */
bool reaper_has_children(void);

/* Tells whether there is a child that is not watched, zombies included. */
bool reaper_has_orphans(void);

/*
 * Sends a signal to every process of the session that can be reached: the whole
 * namespace, or without one the runner's children.
 */
void reaper_signal_all(int sig);

/* Sends SIGKILL until no child is left. Blocks for at most timeout_ms. */
void reaper_kill_all(int timeout_ms);

#endif
