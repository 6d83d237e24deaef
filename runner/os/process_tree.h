/* SPDX-License-Identifier: ISC */
/*
 * Finds the processes of a command below the runner: its process group, or
 * everything in the session it leads (setsid(2)) and below that. A descendant
 * in another session whose parents have ended is found by the command's mark,
 * if it has one.
 */
#pragma once

#include <sys/resource.h>

#include "base.h"
#include "table.h"

enum process_target { PROCESS_ALONE, PROCESS_GROUP, PROCESS_TREE };

/*
 * Returns a mark for a command that is held neither by a control group nor by a
 * pid namespace. The mark is a limit on real-time CPU time (RLIMIT_RTTIME) of
 * more than a hundred thousand years. It limits nothing, and all descendants
 * inherit it. It is unique among the commands of all runners. If a command sets
 * that limit itself, or was started with one, it is found as if it had no mark.
 */
uint64_t process_tree_new_mark(void);

/* Sets the mark. Called in the child before exec; makes only system calls. */
void process_tree_set_mark(uint64_t mark);

/* Whose processes are meant. */
struct process_tree {
	pid_t leader;
	uint64_t mark; /* 0: none */
	/*
	 * process_tree_now() when the leader was reaped; 0: it was not. From
	 * then on others may get its pid and begin a session or a group with
	 * that number, and who started later belongs to them.
	 */
	uint64_t reaped;
};

/* Returns the present time, as the kernel counts the starts of processes. */
uint64_t process_tree_now(void);

/*
 * Sends a signal to the group or tree of a leader, which may have ended. For
 * SIGKILL all processes are stopped before the first one is killed, so that
 * none can escape by forking. Returns how many got the signal, or -errno if
 * /proc cannot be read.
 */
int process_tree_signal(
    const struct process_tree *t, int sig, enum process_target target);

/* --- reaper.c ------------------------------------------------------------ */

/*
 * Reaps children, and makes sure that none is left at the end. The runner is
 * pid 1 of its namespace or a subreaper, so every orphan of the session becomes
 * its child.
 */

struct event_base;

/* Embedded in the object that wants to know the end of one child. */
struct reaper_watch {
	struct table_node node;
	pid_t pid;
	/* NULL: its end is noticed elsewhere, and it is only reaped */
	void (*ended)(struct reaper_watch *w, int wait_status,
	    const struct rusage *usage);
};

/* Signals that a parent ignored, blocked or handled must not stay so in a
 * child.
 */
void reaper_reset_signals(void);

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
