/* SPDX-License-Identifier: ISC */
/* Reserved descriptors. Program: execd-runner. */
#include "reserve.h"

#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#include "util.h"

/*
 * A command of the broker brings a descriptor, and the kernel drops it if there
 * is no place for it. There is room for the attached client, the connection
 * that may follow it, and the watchers (16, session_registry.h of the broker).
 */
#define FOR_ORDERS 19

/* 0: not reserved yet; -1: given */
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
