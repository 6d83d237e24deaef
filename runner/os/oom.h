/* SPDX-License-Identifier: ISC */
/*
 * Counts the processes that the kernel killed for lack of memory in the cgroup
 * of the runner and its commands (cgroups(7)).
 */
#ifndef OOM_H
#define OOM_H

#include <stdint.h>

/*
 * Returns the kills in the cgroup so far; 0 if there is no count. The first
 * call opens the file. Only commands without a control group of their own need
 * it.
 */
uint64_t oom_kills(void);

#endif
