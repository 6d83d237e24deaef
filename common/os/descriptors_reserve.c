/* SPDX-License-Identifier: ISC */
/* A reserve of descriptors. Apart, because root's execd has none. */
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#include "descriptors.h"
#include "util.h"

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
