/* SPDX-License-Identifier: ISC */
/*
 * Finds the processes of a command in /proc: its process group, or everything
 * in the session it leads (setsid(2)) and below that. A descendant in another
 * session whose parents have ended is found by the command's mark, if it has
 * one.
 */
#ifndef PROCESS_TREE_H
#define PROCESS_TREE_H

#include <stdint.h>
#include <sys/types.h>

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

/* The present time, as the kernel counts the starts of processes. */
uint64_t process_tree_now(void);

/*
 * Sends a signal to the group or tree of a leader, which may have ended. For
 * SIGKILL all processes are stopped before the first one is killed, so that
 * none can escape by forking. Returns how many got the signal, or -errno if
 * /proc cannot be read.
 */
int process_tree_signal(
    const struct process_tree *t, int sig, enum process_target target);

#endif
