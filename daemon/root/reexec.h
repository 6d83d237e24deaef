/* SPDX-License-Identifier: ISC */
/*
 * Another version of this program takes over, by execve(2): the process stays,
 * and so do its children, their channels and all that is kept. Nobody notices,
 * neither the broker nor a runner. SIGUSR2 asks for it.
 */
#ifndef REEXEC_H
#define REEXEC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* `execd --check-state`: can this program go on from the state on CONTROL_FD?
 * Its exit status, which is REEXEC_YES only then: many programs that are not
 * execd exit with 0. What is in the way is logged. */
#define REEXEC_CHECK "--check-state"
#define REEXEC_YES   93
int reexec_check(void);

/* Goes on where the version before this one was. False: there is none. */
bool reexec_resume(void);

/* Asks the installed program whether it can take over. If it can, reexec_turn()
 * does not return some time later; if not, this one goes on, and the log says
 * why. */
void reexec_ask(void);

/* A child of that pid, is it the one that was asked? */
bool reexec_has(pid_t pid);

/* Takes its answer. Between two orders. */
void reexec_reap(void);

/* When to come again, or -1. */
int64_t reexec_watch(int64_t now);

#endif
