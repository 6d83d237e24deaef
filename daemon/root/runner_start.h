/* SPDX-License-Identifier: ISC */
/*
 * The child that becomes a user's program. It is a copy of root's execd until
 * it executes the program. This copy holds nothing but numbers, and the user
 * cannot read it because it is not dumpable.
 */
#ifndef RUNNER_START_H
#define RUNNER_START_H

#include "cgroup.h"
#include "spawn_user.h"

/* Starts a runner, as root in namespaces of its own, with its control channel
 * on CONTROL_FD, and in the session's control group. Returns its pid or
 * -errno. */
pid_t spawn_runner(const struct spawn_user *o, uint64_t group, int control_fd,
    const struct cgroup *cgroup);

/* Starts another program, with its channel. `o` is the user of the list that it
 * is there for, or NULL. Returns its pid or -errno. */
pid_t spawn_program(
    enum control_program_kind kind, const struct spawn_user *o, int control_fd);

/* Checks whether this host can give a session its namespaces. Returns 0, or
 * -errno with the step that failed. */
int spawn_probe(const char **step);

#endif
