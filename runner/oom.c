/*
 * Kills for want of memory, from a file that stays open.
 */
#include "oom.h"

#include "cgroup.h"

static int count_fd = -1;

void
oom_init(void)
{
	struct cgroup own;

	cgroup_open_own(&own);
	count_fd = cgroup_open_oom(&own);
	cgroup_close(&own);
}

uint64_t
oom_kills(void)
{
	return cgroup_read_oom(count_fd);
}
