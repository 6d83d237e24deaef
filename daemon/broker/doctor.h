/* SPDX-License-Identifier: ISC */
/*
 * The layers of a sandbox that execd doctor tries, and what to change where one
 * is missing.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct programs;

/* The user whose commands would run in the sandbox. */
struct patient {
	const struct programs *programs;
	char *name; /* owned */
	uid_t uid;
	gid_t gid;
	bool root;  /* whether execd is root */
	int userns; /* only as root; -errno if it could not be made */
};

struct layer {
	const char *name;
	bool needed; /* no sandbox works without it */
	bool inside; /* tried inside the user namespace */
	void (*probe)(const struct patient *p);
	const char *(*advice)(int err);
};

/* In the order in which they are tried. */
extern const struct layer doctor_layers[];
extern const size_t doctor_layers_count;

/* What root needs for each session. Only root tries it. */
extern const struct layer doctor_session;

/* The probes of layers on whose results others depend. A probe runs in a child
 * as the user of the commands. It ends the child with the errno of what failed,
 * or returns. */
void doctor_try_user(const struct patient *p);
void doctor_try_pid(const struct patient *p);
void doctor_try_landlock(const struct patient *p);

#endif
