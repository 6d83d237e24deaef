/* SPDX-License-Identifier: ISC */
/*
 * What root's execd has a process of its own do: execd-child, which is executed
 * for one task and ends. It has root's rights, and nothing that root knows.
 * Root sends the task on CONTROL_FD before the program begins. Both are of one
 * version: root opens the program when it starts.
 */
#pragma once

#include "cgroup_claim.h"
#include "control_spawn.h"

/* One byte more than the broker accepts of a file. */
#define TASK_FILE_BYTES ((8u << 20) + 1)

enum task_kind {
	TASK_CLAIM,   /* answered by task_claimed; then a byte is awaited */
	TASK_RELEASE, /* + fds of claim.own and claim.base */
	/* make a user namespace of uid and gid: spawn_opened (+ fd) */
	TASK_NAMESPACE,

	/* Work that may never end, and is answered to the broker: control_found
	 * (+ fd). + fds: a pipe that is closed when the disk has answered, and
	 * a descriptor to work with. */
	TASK_HOLD,     /* have the descriptor last */
	TASK_UNBIND,   /* remove the file of a listener that listens */
	TASK_PERMIT,   /* say who may connect to a listener that goes on */
	TASK_BIND,     /* bind the listener */
	TASK_OPEN,     /* open the place */
	TASK_TRY_OPEN, /* find out whether that can be done */
	TASK_RECORD,   /* make place.name in the directory place.path */
	TASK_COPY,     /* copy the file place.path, into memory */
};

struct task {
	enum task_kind kind;
	uint8_t hierarchies; /* of each group that is sent */
	struct cgroup_claim claim;
	struct control_place place;
	uid_t uid;
	gid_t gid;
};

/* Opens the program. Returns 0, or -errno with its path in `missing`. */
int task_init(char missing[PATH_MAX]);

/* Starts the program for the task, with copies of these descriptors. Returns
 * its pid and in *channel this end of its channel, which is the caller's, or
 * -errno. */
pid_t task_start(
    const struct task *t, const int *fds, size_t nfds, int *channel);

/* The group of execd, which is the child's until root has its lock, too. */
struct task_claimed {
	int err; /* -errno */
	struct cgroup_claim claim;
	char why[CGROUP_CLAIM_WHY_MAX];
	char own[CGROUP_HIERARCHIES][PATH_MAX]; /* the path; "": none */
};
