/* SPDX-License-Identifier: ISC */
/*
 * Children: who ended, and that nobody is left at the end. The runner is pid
 * 1 of its namespace or a subreaper, so every orphan of the session ends up
 * here too.
 */
#ifndef REAPER_H
#define REAPER_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "table.h"

struct event_base;

/* Embedded in whoever wants to hear of the end of one child. */
struct reaper_watch {
	struct table_node node;
	pid_t pid;
	void (*ended)(struct reaper_watch *w, int wait_status,
	    const struct rusage *usage);
};

/* SIGCHLD is taken over (signalfd). `pid_namespace`: the runner is pid 1
 * (-EPERM: it is not); otherwise it becomes a subreaper. `idle` is called
 * whenever the last child was reaped. 0 or -errno. */
int reaper_init(
    struct event_base *base, bool pid_namespace, void (*idle)(void));

void reaper_add(struct reaper_watch *w, pid_t pid,
    void (*ended)(
	struct reaper_watch *w, int wait_status, const struct rusage *usage));
void reaper_remove(struct reaper_watch *w);

/* Has a signal stopped that child (SIGSTOP)? Its pid is not reused meanwhile:
 * nobody but this file reaps it. False when it has ended. */
bool reaper_is_stopped(const struct reaper_watch *w);

/* Is that pid a child's that somebody wants to hear of? */
bool reaper_is_watched(pid_t pid);

/* Is there any child, watched or orphan? */
bool reaper_has_children(void);

/* Is there a child that nobody wants to hear of, zombies included? */
bool reaper_has_orphans(void);

/* Sends a signal to every process of the session that can be reached: the
 * whole namespace, or every child and, as they die, what they leave. */
void reaper_signal_all(int sig);

/* SIGKILL until nobody is left; blocks, at most timeout_ms. */
void reaper_kill_all(int timeout_ms);

#endif
