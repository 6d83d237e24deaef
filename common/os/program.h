/* SPDX-License-Identifier: ISC */
/*
 * The last steps before exec. These functions make only system calls and are
 * safe in a child of vfork(2).
 */
#ifndef PROGRAM_H
#define PROGRAM_H

/* Restores the default action of SIGPIPE, which every program of execd ignores,
 * and unblocks all signals. */
void program_reset_signals(void);

/*
 * Executes the first candidate that can be executed, like execvp(3).
 * `candidates` ends with NULL. If a file does not exist, the next candidate is
 * tried. If a file may not be executed, the next one is tried as well, but the
 * error is kept. A directory that may not be searched counts as empty. Returns
 * only on error, with -errno.
 */
int program_execute(
    const char *const *candidates, char *const argv[], char *const envp[]);

#endif
