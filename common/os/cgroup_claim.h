/* SPDX-License-Identifier: ISC */
/*
 * The group that a program makes for itself below the one that it was started
 * in, and what it hands down there. An execd that starts and `execd doctor` do
 * the same, so that doctor cannot say ok where a session has no limits.
 */
#pragma once

#include "cgroup.h"

#define CGROUP_CLAIM_WHY_MAX 256

struct cgroup_claim {
	struct cgroup own;    /* where the program was started */
	struct cgroup base;   /* its own below; not open: there are no groups */
	char name[32];	      /* of base */
	unsigned controllers; /* enum cgroup_controller: of groups below base */
	bool moved;	      /* the program, into base (version 2) */
	pid_t program;	      /* with all below it the only one in own */
};

/*
 * Makes the group for a program, this one or its parent, or takes that of one
 * that was killed. In version 2 all its processes move into it, and all
 * controllers are handed down. If one step fails, those before it are undone.
 *
 * Returns 0 with the group, or -errno without one. why[CGROUP_CLAIM_WHY_MAX]
 * then says in words what is missing; it is also filled, and otherwise empty,
 * where a controller is missing.
 */
int cgroup_claim(struct cgroup_claim *c, pid_t program, char *why);

/* Moves back to where the program was started, and removes the group, which is
 * empty but for the program. Returns 0 or -errno. */
int cgroup_claim_end(struct cgroup_claim *c);
