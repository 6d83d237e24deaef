/* SPDX-License-Identifier: ISC */
/*
 * Starts a child inside a control group (clone3(2), CLONE_INTO_CGROUP; Linux
 * 5.7, version 2 only). Joining through cgroup.procs makes the whole system
 * wait; this does not.
 */
#pragma once

#include "base.h"

/* For functions that run on a stack made for them and do not return. The
 * address sanitizer would look for the stack that it knows, not find it, and
 * end the program. */
#define ON_OWN_STACK __attribute__((no_sanitize("address")))

/* Before such a stack is used again: functions that did not return left marks
 * on it, which the address sanitizer would report as errors of the next
 * function. Without that sanitizer this does nothing. */
void own_stack_reuse(void *stack, size_t bytes);

/*
 * Like clone(2) with these flags, and with SIGCHLD unless flags contain
 * CLONE_PARENT. The child calls run(arg) on `stack`; the result is its exit
 * status. `group` is a descriptor of a version 2 directory. Returns the pid or
 * -errno. clone_into_is_missing() tells whether this -errno means that the
 * kernel does not support the call; then the caller uses another way.
 */
pid_t clone_into(int group, int (*run)(void *arg), void *arg, char *stack,
    size_t stack_bytes, unsigned long flags);

static inline bool
clone_into_is_missing(int err)
{
	return err == -ENOSYS || err == -EINVAL || err == -E2BIG ||
	       err == -EOPNOTSUPP;
}
