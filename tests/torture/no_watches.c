/* SPDX-License-Identifier: ISC */
/*
 * Stands where one of execd's programs does and becomes it, NAME.real. Neither
 * that program nor any that it starts gets a watch of epoll(7).
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "no_watches.h"

int
main(int argc, char **argv)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 16);

	if (n < 0 || take_all_watches() < 0)
		return 1;
	strcpy(path + n, ".real");
	execv(path, argv);
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	return 1;
}
