/* SPDX-License-Identifier: ISC */
/*
 * Finds the other programs: under the prefix to which the running one was
 * installed, or in the build tree in which it was built. A PATH is never
 * searched. Programs are executed by descriptor, so the user need not be able
 * to look into their directory.
 */
#pragma once

#include <limits.h>

enum installed_program {
	INSTALLED_FRONTEND,
	INSTALLED_RUNNER,
	INSTALLED_HTTP,
	INSTALLED_KEYS,
	INSTALLED_BROKER,
	INSTALLED_FILES,
	INSTALLED_NETPROXY, /* the broker opens it */
	INSTALLED_SANDBOX,  /* the runner opens it */
	INSTALLED_CHILD,    /* root opens it, beside those of a broker */
	INSTALLED_EXECD,
	INSTALLED_PROGRAMS,
};

/* Opened once. A new version on the disk makes no difference to a program that
 * has them open. */
#define PROGRAMS_OPENED INSTALLED_NETPROXY
struct programs {
	int fds[PROGRAMS_OPENED]; /* O_PATH, CLOEXEC; all of them, or -1 */
};
#define PROGRAMS_NONE                                                          \
	{                                                                      \
		{                                                              \
			-1, -1, -1, -1, -1, -1                                 \
		}                                                              \
	}

/* Opens the running program's own file as it is installed now. An upgrade
 * replaces the file that was executed. Returns a descriptor, O_PATH, CLOEXEC
 * and the caller's, or -errno. */
int programs_open_self(void);

/* Where this program was when this was called first: later it may be renamed.
 * Returns a path that stays valid, not the caller's, or NULL with errno. */
const char *programs_self(void);

/* Opens one program. Returns a descriptor, O_PATH, CLOEXEC and the caller's, or
 * -errno with the missing program in `missing`. */
int programs_open_one(enum installed_program program, char missing[PATH_MAX]);

/* Opens all programs. Returns 0, or -errno likewise, and then none is open. */
int programs_open(struct programs *p, char missing[PATH_MAX]);

void programs_close(struct programs *p);
