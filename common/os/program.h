/* SPDX-License-Identifier: ISC */
/*
 * The last step of a child: exec. It makes only system calls and is safe in a
 * child of vfork(2).
 */
#pragma once

#include "base.h"

/* The first line of a script ends with a carriage return. execve(2) takes that
 * for a part of the interpreter's name, and says ENOENT. No system call of
 * program_execute() fails with this errno. */
#define PROGRAM_CARRIAGE_RETURN ELIBSCN

/*
 * Executes the first candidate that can be executed, like execvp(3).
 * `candidates` ends with NULL. If a file does not exist, the next candidate is
 * tried. If a file may not be executed, the next one is tried as well, but the
 * error is kept. A directory that may not be searched counts as empty. Returns
 * only on error, with -errno; -PROGRAM_CARRIAGE_RETURN is one of them.
 */
int program_execute(
    const char *const *candidates, char *const argv[], char *const envp[]);

/* Limits the processor time of each process of a command (RLIMIT_CPU): after so
 * many seconds it gets SIGXCPU, which says why, and a second later SIGKILL. A
 * limit that is lower stays. 0: no limit. Returns 0 or -errno. */
int program_limit_cpu(uint32_t seconds);
