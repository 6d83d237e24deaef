/* SPDX-License-Identifier: ISC */
/*
 * Descriptors kept for later (runner).
 */
#include "reserve.h"

#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#include "util.h"

/* An order brings a descriptor, and without a place for it the kernel drops
 * it: for the attached client, whose own connection may follow, and for those
 * that watch (16, session.h of the broker). */
#define FOR_ORDERS 19

/* 0: none, -1: given. */
static int paths[FOR_ORDERS + RESERVE_TO_KILL];

void
reserve_begin(void)
{
	for (size_t i = 0; i < nitems(paths); i++)
		paths[i] = -1;
	reserve_keep();
}

void
reserve_give(unsigned n)
{
	for (size_t i = 0; i < nitems(paths) && n > 0; i++) {
		if (paths[i] <= 0)
			continue;
		close(paths[i]);
		paths[i] = -1;
		n--;
	}
}

void
reserve_keep(void)
{
	for (size_t i = 0; i < nitems(paths); i++)
		if (paths[i] < 0)
			paths[i] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 4);
}
