/*
 * Whom the kernel kills for want of memory, as far as the cgroup of the
 * runner and its commands counts it (cgroups(7)).
 */
#ifndef OOM_H
#define OOM_H

#include <stdint.h>

/* Finds the count. Without one oom_kills() stays 0. */
void oom_init(void);

/* Kills in the cgroup so far. */
uint64_t oom_kills(void);

#endif
