/* SPDX-License-Identifier: ISC */
/* The limit on open descriptors, and a reserve of them. */
#include "descriptors.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util.h"

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

/* --- reserved ----------------------------------------------------------- */

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
