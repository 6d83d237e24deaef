/* SPDX-License-Identifier: ISC */
/*
 * A child that is in its control group from its first moment (clone3(2),
 * CLONE_INTO_CGROUP; Linux 5.7, version 2 only). Joining by cgroup.procs makes
 * all of the system wait; this makes nobody wait.
 */
#ifndef CLONE_INTO_H
#define CLONE_INTO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Whoever runs on a stack that was made for it and does not return. The
 * address sanitizer would look for the stack it knows, and end the program
 * when it does not find it. */
#define ON_OWN_STACK __attribute__((no_sanitize("address")))

/*
 * As clone(2) with these flags, and SIGCHLD unless CLONE_PARENT is one of
 * them: `run` with `arg` on `stack`; its result is the child's exit status.
 * `group` is a directory of version 2. The pid, or -errno;
 * clone_into_is_missing() tells of those with which this kernel says that it
 * cannot do it, and another way is due.
 */
pid_t clone_into(int group, int (*run)(void *arg), void *arg, char *stack,
    size_t stack_bytes, unsigned long flags);
bool clone_into_is_missing(int err);

#endif
