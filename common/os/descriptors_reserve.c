/* SPDX-License-Identifier: ISC */
/* A reserve of descriptors, and what is left to commands. Apart, because root's
 * execd has neither. */
#include <sys/resource.h>

#include "base.h"
#include "descriptors.h"

/* 0: not reserved; -1: given */
static int reserved[RESERVE_MAX];

void
reserve_begin(unsigned n)
{
	for (unsigned i = 0; i < n && i < RESERVE_MAX; i++)
		reserved[i] = -1;
	reserve_keep();
}

void
reserve_give(unsigned n)
{
	for (size_t i = 0; i < nitems(reserved) && n > 0; i++) {
		if (reserved[i] <= 0)
			continue;
		close(reserved[i]);
		reserved[i] = -1;
		n--;
	}
}

void
reserve_keep(void)
{
	for (size_t i = 0; i < nitems(reserved); i++)
		if (reserved[i] < 0)
			reserved[i] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 4);
}

static uint64_t soft; /* 0: it was never raised */

void
descriptors_raise_all(void)
{
	soft = descriptors_soft();
	descriptors_raise(UINT64_MAX);
}

uint64_t
descriptors_soft(void)
{
	struct rlimit r;

	return soft > 0				   ? soft
	       : getrlimit(RLIMIT_NOFILE, &r) == 0 ? r.rlim_cur
						   : 0;
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
