/*
 * What the monitor orders of its starter: STARTER_* of control.h.
 */
#ifndef CONTROL_STARTER_H
#define CONTROL_STARTER_H

#include <stdint.h>

#include "control_limits.h"

/* Whom a runner becomes, and its session's control group. What has no fixed
 * length is in the list that comes along (starter_identity.h). */
struct control_start {
	char
	    group[CONTROL_GROUP_MAX]; /* of the session: SESSION_GROUP_PREFIX */
	char name[80];		      /* of the identity, for the log */
	char home[CONTROL_STRING_MAX];
	uint32_t uid, gid, umask;
	uint32_t session_processes, session_cpu_percent;
	bool limits_command_cpu;
	uint64_t session_memory_bytes;
	uint32_t max_processes, max_open_files, max_cpu_ms;
	uint64_t max_memory_bytes, max_file_bytes;
};

struct control_runner_started {
	uint32_t error; /* an errno, or 0 */
	uint32_t pid;
	uint8_t cgroups; /* bits: which enum cgroup_hierarchy travel along */
};

struct control_door {
	uint32_t uid, gid;
};

struct control_starter_error {
	uint32_t error; /* an errno, or 0 */
	char step[64];	/* that failed */
};

struct control_starter_ready {
	uint32_t error; /* as in control_starter_error */
	char step[64];
	uint32_t controllers; /* CGROUP_COUNTS_*: what its groups can hold */
};

struct control_pid {
	uint32_t pid;
};

struct control_runner_status {
	uint32_t pid;
	uint32_t status; /* as of wait(2) */
};

#endif
