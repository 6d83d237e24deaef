/*
 * Start of a runner: from root to the session's user in one straight line.
 */
#ifndef RUNNER_START_H
#define RUNNER_START_H

#include <stdbool.h>
#include <sys/types.h>

#include "cgroup.h"
#include "identity.h"

/*
 * Forks and execs the program as the identity, its control channel on
 * CONTROL_FD. With `root`: in a new pid namespace (the runner is pid 1) and a
 * mount namespace with its own /proc, privileges dropped and proved dropped.
 * It joins its control groups first. Returns the pid, or -errno if it could not
 * be forked. Failures in the child are logged there and end it.
 */
pid_t runner_start(int program_fd, const struct identity *id, bool root,
    int control_fd, const int joins[CGROUP_HIERARCHIES]);

/* Can this host give a runner its namespaces? 0 or -errno of the step that
 * failed, named in *step. */
int runner_probe(const char **step);

#endif
