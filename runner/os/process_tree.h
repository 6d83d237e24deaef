/* SPDX-License-Identifier: ISC */
/*
 * Who belongs to a command, by what /proc says now: its process group, or
 * everything in the session it leads (setsid(2)) and below that. A descendant
 * in a session of its own, whose parents have ended, is found by the command's
 * mark, where it has one.
 */
#ifndef PROCESS_TREE_H
#define PROCESS_TREE_H

#include <stdint.h>
#include <sys/types.h>

enum process_target { PROCESS_ALONE, PROCESS_GROUP, PROCESS_TREE };

/*
 * A mark for a command that neither a control group nor a pid namespace holds:
 * a limit on the time of real-time processes (RLIMIT_RTTIME) of more than a
 * hundred thousand years, which is none and which all descendants inherit.
 * Unique among the commands of all runners. A command that sets that limit
 * itself, or that was started with one, is found as if it had no mark.
 */
uint64_t process_tree_new_mark(void);

/* In the child, before it executes the command; only system calls. */
void process_tree_set_mark(uint64_t mark);

/*
 * Sends a signal to the group or tree of a leader, which may have ended. With
 * SIGKILL all of them are stopped before the first one dies, so that none can
 * fork away. A mark of 0 is none. Returns how many got it, or -errno when /proc
 * does not tell.
 */
int process_tree_signal(
    pid_t leader, uint64_t mark, int sig, enum process_target target);

#endif
