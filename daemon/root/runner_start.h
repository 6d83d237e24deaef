/* SPDX-License-Identifier: ISC */
/*
 * The child that becomes a user's program. It is a copy of root's execd until
 * it executes; there is nothing in that copy but numbers, and it cannot be
 * read by the user (it is not dumpable).
 */
#ifndef RUNNER_START_H
#define RUNNER_START_H

#include "cgroup.h"
#include "order.h"

/* A runner, in namespaces of its own if this is root, with its control channel
 * as CONTROL_FD, in the control group that joins lead to. Its pid or -errno. */
pid_t spawn_runner(int program_fd, const struct spawn_order *o,
    const char *group, int control_fd, const int joins[CGROUP_HIERARCHIES]);

/* A program that hears strangers, or its helper, as the user of the list. Its
 * pid or -errno. */
pid_t spawn_program(int program_fd, enum control_program_kind kind,
    const struct control_seal *seal, int control_fd);

/* Can this host give a session its namespaces? 0, or -errno with the step
 * that failed. */
int spawn_probe(const char **step);

#endif
