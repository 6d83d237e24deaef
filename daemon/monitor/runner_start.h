/*
 * Start of runners, by a template that each identity has.
 */
#ifndef RUNNER_START_H
#define RUNNER_START_H

#include <stdbool.h>
#include <sys/types.h>

#include "cgroup.h"
#include "identity.h"

/*
 * Another runner for the identity, with control_fd as its control channel. With
 * `root`: in a new pid namespace (the runner is pid 1) and a mount namespace
 * with its own /proc, privileges dropped and proved dropped. It joins its
 * control groups first. Returns the pid, a child of the caller's, or -errno if
 * there is none. Failures in the child are logged there and end it.
 */
pid_t runner_start(int program_fd, struct identity *id, bool root,
    int control_fd, const int joins[CGROUP_HIERARCHIES]);

/* The same in two steps, between which others have their turn: the order, 0 or
 * -errno, and its answer, which is waited for. One at a time of an identity. */
int runner_order(int program_fd, struct identity *id, bool root, int control_fd,
    const int joins[CGROUP_HIERARCHIES]);
pid_t runner_collect(struct identity *id);

/* Before the control group that they are in is removed. */
void runner_template_stop_all(void);

/* Is it a template's? */
bool runner_template_has(pid_t pid);

/* Was it? The next runner gets another one. */
bool runner_template_reap(pid_t pid, int status);

/* Can this host give a runner its namespaces? 0 or -errno of the step that
 * failed, named in *step. */
int runner_probe(const char **step);

#endif
