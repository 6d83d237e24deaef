/*
 * Whom the kernel kills for want of memory, as far as the control group of a
 * command, or of the runner with its commands, counts it (cgroups(7)).
 */
#ifndef OOM_H
#define OOM_H

#include <stdint.h>

#include "cgroup.h"

/* Finds the count. Without one oom_kills() stays 0. */
void oom_init(void);

/* Kills in that group so far; NULL, or one that does not count: in the
 * runner's own. */
uint64_t oom_kills(const struct cgroup *c);

#endif
