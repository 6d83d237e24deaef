/*
 * Where the other programs are: under the prefix that execd was installed
 * to, or in the build tree it was built in. Never searched for on a PATH.
 */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include <limits.h>

struct programs {
	char frontend[PATH_MAX];
	char runner[PATH_MAX];
};

/* 0, or -errno with the missing program in `missing`. */
int programs_find(struct programs *p, char missing[PATH_MAX]);

#endif
