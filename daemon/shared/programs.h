/* SPDX-License-Identifier: ISC */
/*
 * Where the other programs are: under the prefix that the running one was
 * installed to, or in the build tree it was built in. Never searched for on a
 * PATH. They are executed by descriptor, so that a user who may not look into
 * their directory makes no difference.
 */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include <limits.h>

enum installed_program {
	INSTALLED_BROKER,
	INSTALLED_FRONTEND,
	INSTALLED_RUNNER,
	INSTALLED_HTTP,
	INSTALLED_KEYS,
	INSTALLED_PROGRAMS,
};

/* Opened once: a new version on the disk makes no difference to who has them
 * open. */
struct programs {
	int frontend, runner, http, keys; /* O_PATH, CLOEXEC */
};

/* The running program's own, as it is installed now: not the file that was
 * executed, which an upgrade replaces. O_PATH, CLOEXEC and the caller's, or
 * -errno. */
int programs_open_self(void);

/* To be called first: a program that runs may be renamed. */
void programs_note_self(void);

/* A descriptor, O_PATH and CLOEXEC and the caller's, or -errno with the missing
 * program in `missing`. */
int programs_open_one(enum installed_program program, char missing[PATH_MAX]);

/* All but the broker. 0, or -errno likewise. */
int programs_open(struct programs *p, char missing[PATH_MAX]);

#endif
