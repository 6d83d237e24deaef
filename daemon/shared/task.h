/* SPDX-License-Identifier: ISC */
/*
 * What root's execd has a process of its own do: execd-child, which is executed
 * for one task and ends. It has root's rights, and nothing that root knows.
 * Root sends the task on CONTROL_FD before the program begins. Both are of one
 * version: root opens the program when it starts.
 */
#pragma once

#include "cgroup_claim.h"

enum task_kind {
	TASK_CLAIM,   /* answered by task_claimed; then a byte is awaited */
	TASK_RELEASE, /* + fds of claim.own and claim.base */
};

struct task {
	enum task_kind kind;
	uint8_t hierarchies; /* of each group that is sent */
	struct cgroup_claim claim;
};

/* The group of execd, which is the child's until root has its lock, too. */
struct task_claimed {
	int err; /* -errno */
	struct cgroup_claim claim;
	char why[CGROUP_CLAIM_WHY_MAX];
	char own[CGROUP_HIERARCHIES][PATH_MAX]; /* the path; "": none */
};
