/* SPDX-License-Identifier: ISC */
/*
 * Pid and mount namespaces for a session. Its processes have pids of their own
 * and see only each other in /proc, and mounts made inside stay inside.
 */
#pragma once

#include "base.h"

/* Forks, if `isolated` into new pid and mount namespaces. Only a program with
 * one thread may call it. The child continues as after fork(2). Returns the
 * pid, 0 in the child, or -errno. */
pid_t namespaces_fork(bool isolated);

/*
 * Called in the child. Makes mounts one-way: mounts that the host makes later
 * still appear inside, but none made inside appears on the host. Mounts a /proc
 * of its own, and lets pids begin at a random number. Returns 0, or -errno with
 * the failed step in *step.
 */
int namespaces_enter(const char **step);
