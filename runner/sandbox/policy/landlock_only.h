/* SPDX-License-Identifier: ISC */
/*
 * Sandboxes without user namespaces, by Landlock and seccomp alone
 * (doc/sandbox.md C7): only where the operator permits it, and only for plans
 * that say no more than what is writable. A view does everything else.
 */
#ifndef LANDLOCK_ONLY_H
#define LANDLOCK_ONLY_H

#include "resolve.h"
#include "sandbox_limits.h"

#define LANDLOCK_ONLY_WHY_MAX 240

struct landlock_only {
	const struct sandbox_limits *limits;
	const struct plan *plan;
	bool single_user; /* execd is not root */
	bool required;	  /* the request must have every layer */
};

/*
 * Would Landlock and seccomp hold what the plan says? False: why not in
 * why[LANDLOCK_ONLY_WHY_MAX], or nothing where the operator did not ask for it.
 * Pure; what the kernel has, user namespaces and SANDBOX_LANDLOCK_ONLY_ABI, the
 * sandbox finds out (sandbox_main.c).
 */
bool landlock_only_suits(const struct landlock_only *q, char *why);

#endif
