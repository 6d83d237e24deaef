/* SPDX-License-Identifier: ISC */
/*
 * Sandboxes without user namespaces, made by Landlock and seccomp alone
 * (doc/sandbox.md C7). They are used only where the operator permits it, and
 * only for plans that limit nothing but what is writable. Everything else needs
 * a view.
 */
#pragma once

#include "resolve.h"
#include "sandbox_limits.h"

#define LANDLOCK_ONLY_WHY_MAX 240

struct landlock_only {
	const struct sandbox_limits *limits;
	const struct plan *plan;
	bool single_user; /* execd is not root */
	bool required;	  /* the request demands every layer */
};

/*
 * Tells whether Landlock and seccomp alone can enforce the plan. If not, the
 * reason is written to why[LANDLOCK_ONLY_WHY_MAX]; it is empty if the operator
 * did not permit this mode. The function is pure. The sandbox itself checks
 * what the kernel supports: user namespaces and SANDBOX_LANDLOCK_ONLY_ABI
 * (sandbox_main.c).
 */
bool landlock_only_suits(const struct landlock_only *q, char *why);
