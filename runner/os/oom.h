/* SPDX-License-Identifier: ISC */
/*
 * Whom the kernel kills for want of memory, as far as the cgroup of the
 * runner and its commands counts it (cgroups(7)).
 */
#ifndef OOM_H
#define OOM_H

#include <stdint.h>

/* Kills in the cgroup so far; 0 where nobody counts. The first call finds the
 * count: only a command without a control group of its own needs that. */
uint64_t oom_kills(void);

#endif
