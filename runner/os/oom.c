/* SPDX-License-Identifier: ISC */
/* Kills for lack of memory, read from a file that stays open. */
#include "oom.h"

#include "cgroup.h"

static int
open_count(void)
{
	struct cgroup own;
	int fd;

	cgroup_open_own(&own);
	fd = cgroup_open_oom(&own);
	cgroup_close(&own);
	return fd;
}

uint64_t
oom_kills(void)
{
	static int count_fd = -1;
	static bool tried;

	if (!tried)
		count_fd = open_count();
	tried = true;
	return cgroup_read_oom(count_fd);
}
