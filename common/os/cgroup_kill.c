/* SPDX-License-Identifier: ISC */
/*
 * Kills the members of control groups.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cgroup.h"
#include "cgroup_file.h"

static int
kill_members(int dir)
{
	int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	int pid;

	if (f == NULL)
		return -errno;
	/* A pid of 0 is outside our pid namespace and cannot be signalled. */
	while (fscanf(f, "%d", &pid) == 1)
		if (pid > 0)
			kill((pid_t)pid, SIGKILL);
	fclose(f);
	return 0;
}

/* Version 1 has no cgroup.kill. The members are first kept from forking, so
 * that none can escape the list. */
static int
kill_by_list(int dir)
{
	int err = cgroup_write_file(dir, "pids.max", "0");

	return err < 0 ? err : kill_members(dir);
}

int
cgroup_kill(const struct cgroup *c)
{
	if (c->dirs[CGROUP_UNIFIED] >= 0)
		return cgroup_write_file(
		    c->dirs[CGROUP_UNIFIED], "cgroup.kill", "1");
	if (c->dirs[CGROUP_PIDS] >= 0)
		return kill_by_list(c->dirs[CGROUP_PIDS]);
	return -ENOENT;
}
