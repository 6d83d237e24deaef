/* SPDX-License-Identifier: ISC */
/*
 * Limits that control groups hold, as execd.conf(5) has them: of all sessions
 * of execd together, of all sessions of an identity together, and of each
 * command.
 */
#pragma once

#include "base.h"

/* What all processes of a group have together. 0: no limit; all bits: nobody
 * has set it. */
struct group_limits {
	uint64_t memory_bytes;
	uint32_t tasks, cpu_percent, cpu_weight, io_weight;
};

/* The keys, as systemd names them: a row is keyword, type, member. */
#define GROUP_LIMIT_KEYS(ROW)                                                  \
	ROW("memory-max", memory_limit, memory_bytes)                          \
	ROW("tasks-max", sandbox_count, tasks)                                 \
	ROW("cpu-quota", sandbox_percent, cpu_percent)                         \
	ROW("cpu-weight", sandbox_weight, cpu_weight)                          \
	ROW("io-weight", sandbox_weight, io_weight)

/* Makes everything unset. */
void group_limits_init(struct group_limits *l);

/* Returns which of memory and tasks are set: a mask of enum
 * cgroup_controller. */
unsigned group_limits_set(const struct group_limits *l);

/* Replaces what is unset by what `below` says. */
void group_limits_fill(
    struct group_limits *l, const struct group_limits *below);

/*
 * Returns what all sessions of execd may have together if the operator says
 * nothing: all memory of the host but the larger of 10 % and 512 MiB, and 90 %
 * of kernel.pid_max. What is left is for who administers the host. A host of
 * less than 1 GiB keeps a half of its memory.
 */
struct group_limits group_limits_of_host(void);
uint64_t group_limits_host_memory(void);
/* The same, of a host with so much of both. Pure. */
struct group_limits group_limits_of(uint64_t memory_bytes, uint64_t pid_max);

/* Sets what the control groups of this host can limit: a mask of enum
 * cgroup_controller. */
void group_limits_learn(unsigned controllers);
unsigned group_limits_known(void);

/* The names of the controllers, in the order of enum cgroup_controller. */
#define GROUP_CONTROLLERS 4
extern const char *const group_controllers[GROUP_CONTROLLERS];

/* Logs which limits sessions cannot have here, and what takes their place. */
void group_limits_log(bool root);

/* Checks whether limits can be enforced here. If not, returns -EOPNOTSUPP after
 * it has logged which of them cannot; `section` is where they are set. */
int group_limits_check(const char *section, const struct group_limits *l);

/* Writes to reason[256] why a session of that identity was not started. */
void group_limits_reason(const char *identity, char *reason);
