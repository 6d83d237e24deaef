/* SPDX-License-Identifier: ISC */
#include "descriptors.h"

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
