/* SPDX-License-Identifier: ISC */
/*
 * The last steps before a program: only system calls, safe in a child of
 * vfork(2).
 */
#ifndef PROGRAM_H
#define PROGRAM_H

/* SIGPIPE, which every program of execd ignores, at its default, and nothing
 * blocked. */
void program_reset_signals(void);

/*
 * Executes the first of the candidates (NULL-terminated) that can be, as
 * execvp(3) does: a name that is not there leads to the next, one that may not
 * be run is remembered, and a directory that may not be searched counts as
 * empty. Returns only -errno.
 */
int program_execute(
    const char *const *candidates, char *const argv[], char *const envp[]);

#endif
