/* SPDX-License-Identifier: ISC */
/*
 * Another version of this program takes over by execve(2). The process stays,
 * and so do its children, their channels and everything that is kept. Neither
 * the broker nor a runner notices. SIGUSR2 asks for it.
 */
#ifndef REEXEC_H
#define REEXEC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* `execd --check-state`: whether this program can go on from the state on
 * CONTROL_FD. It then exits with REEXEC_YES, because many programs that are not
 * execd exit with 0. What is in the way is logged. */
#define REEXEC_CHECK "--check-state"
#define REEXEC_YES   93
int reexec_check(void);

/* Goes on from the state of the previous version. Returns false if there is
 * none. */
bool reexec_resume(void);

/* Asks the installed program whether it can take over. If it can, reexec_turn()
 * will not return at some later call. If not, this program goes on and the log
 * says why. */
void reexec_ask(void);

/* Tells whether the child with that pid is the one that was asked. */
bool reexec_has(pid_t pid);

/* Takes its answer. Called between two commands. */
void reexec_reap(void);

/* Returns when to call it again, or -1. */
int64_t reexec_watch(int64_t now);

#endif
