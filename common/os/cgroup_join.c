/* SPDX-License-Identifier: ISC */
/*
 * How a command joins its control group. Root's execd has a way of its own:
 * its runners join once, and keep no file open for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cgroup.h"

void
cgroup_close_joins(int joins[CGROUP_HIERARCHIES])
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		if (joins[i] >= 0)
			close(joins[i]);
		joins[i] = -1;
	}
}

int
cgroup_open_joins(const struct cgroup *c, int joins[CGROUP_HIERARCHIES])
{
	int err = 0;

	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		joins[i] = -1;
		if (c->dirs[i] < 0 || err < 0)
			continue;
		joins[i] = openat(c->dirs[i],
		    i == CGROUP_UNIFIED ? "cgroup.procs" : "tasks",
		    O_WRONLY | O_CLOEXEC);
		if (joins[i] < 0)
			err = -errno;
	}
	if (err < 0)
		cgroup_close_joins(joins);
	return err;
}

int
cgroup_join(const int joins[CGROUP_HIERARCHIES], bool born)
{
	for (int i = born ? CGROUP_UNIFIED + 1 : 0; i < CGROUP_HIERARCHIES; i++)
		if (joins[i] >= 0 && write(joins[i], "0", 1) != 1)
			return -errno;
	return 0;
}
