/* SPDX-License-Identifier: ISC */
/* The limit on open descriptors. */
#include "descriptors.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>

static struct rlimit before, after; /* the raise */
static bool raised;

uint64_t
descriptors_raise(uint64_t wanted)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return 0;
	if (!raised)
		before = r;
	if (r.rlim_cur >= wanted || r.rlim_cur == r.rlim_max)
		return r.rlim_cur;
	after = r;
	after.rlim_cur = wanted < r.rlim_max ? wanted : r.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &after) < 0)
		return r.rlim_cur;
	raised = true;
	return after.rlim_cur;
}

/* A limit that was changed after the raise stays as it is. */
void
descriptors_restore(void)
{
	struct rlimit r;

	if (raised && getrlimit(RLIMIT_NOFILE, &r) == 0 &&
	    r.rlim_cur == after.rlim_cur && r.rlim_max == after.rlim_max)
		setrlimit(RLIMIT_NOFILE, &before);
}

uint64_t
descriptors_soft(void)
{
	struct rlimit r = before;

	return raised || getrlimit(RLIMIT_NOFILE, &r) == 0 ? r.rlim_cur : 0;
}

uint64_t
descriptors_of_commands(void)
{
	struct rlimit r;

	return getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur < 4
		   ? 1
		   : r.rlim_cur / 2 - 1;
}

int
descriptors_restrict(void)
{
	rlim_t most = descriptors_of_commands();
	struct rlimit r;

	descriptors_restore();
	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return -errno;
	if (r.rlim_max > most)
		r.rlim_max = most;
	if (r.rlim_cur > r.rlim_max)
		r.rlim_cur = r.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &r) < 0 ? -errno : 0;
}
