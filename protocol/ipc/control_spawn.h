/* SPDX-License-Identifier: ISC */
/*
 * What the broker asks of root: SPAWN_* of control.h. Numbers and descriptors;
 * the strings are the operator's, not a client's.
 */
#ifndef CONTROL_SPAWN_H
#define CONTROL_SPAWN_H

#include <stdbool.h>
#include <stdint.h>

#include "control_limits.h"

/* Whom a runner becomes, and its session's control group. What has no fixed
 * length is in the list that comes along (daemon/root/order.h). */
struct control_start {
	char
	    group[CONTROL_GROUP_MAX]; /* of the session: SESSION_GROUP_PREFIX */
	char session_id[CONTROL_SESSION_ID_MAX];
	char name[CONTROL_IDENTITY_MAX]; /* of the identity, for the log */
	uint32_t uid, gid, umask;
	uint32_t session_processes, session_cpu_percent;
	bool limits_command_cpu;
	uint64_t session_memory_bytes;
	uint32_t max_processes, max_open_files, max_cpu_ms;
	uint64_t max_memory_bytes, max_file_bytes;
};

struct control_runner_started {
	uint32_t error; /* an errno, or 0 */
	char step[64];	/* that failed */
	uint32_t pid;
	uint8_t cgroups; /* bits: which enum cgroup_hierarchy travel along */
};

struct control_userns {
	uint32_t uid, gid;
};

struct control_spawn_error {
	uint32_t error; /* an errno, or 0 */
	char step[64];	/* that failed */
};

struct control_spawn_ready {
	uint32_t error; /* as in control_spawn_error */
	char step[64];
	uint32_t controllers; /* CGROUP_COUNTS_*: what its groups can hold */
	uint64_t groups_made; /* names of control groups that were used */
	bool served;	      /* a broker before this one has served */
};

/* The runners that root keeps, one after the other. */
struct control_next {
	uint32_t index;
};

/* As they were in control_start: what a runner says of itself decides nothing
 * of who may resume its session. */
struct control_kept {
	uint32_t pid; /* 0: there are no more */
	uint32_t uid;
	char group[CONTROL_GROUP_MAX];
	char session_id[CONTROL_SESSION_ID_MAX];
	char name[CONTROL_IDENTITY_MAX];
};

/* A descriptor that is kept for the next broker, under a name. */
#define CONTROL_STORE_NAME_MAX 256
struct control_store {
	char name[CONTROL_STORE_NAME_MAX];
};

struct control_stored {
	bool there; /* and a descriptor comes along */
};

struct control_serving {
	bool replaceable; /* false: it cannot go on with another broker */
};

struct control_stop {
	uint8_t code; /* enum exit_code */
};

struct control_pid {
	uint32_t pid;
};

struct control_runner_status {
	uint32_t pid;
	uint32_t status; /* as of wait(2) */
};

#endif
