/*
 * The other programs, opened once: under the prefix that execd was installed
 * to, or in the build tree it was built in. Never searched for on a PATH.
 * They are executed by descriptor, so that neither a user who may not look
 * into their directory nor a new version on the disk makes a difference.
 */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include <limits.h>

struct programs {
	int frontend, runner, http, keys; /* O_PATH, CLOEXEC */
};

/* 0, or -errno with the missing program in `missing`. */
int programs_open(struct programs *p, char missing[PATH_MAX]);

#endif
