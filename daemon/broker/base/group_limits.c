/* SPDX-License-Identifier: ISC */
#include "group_limits.h"

#include "cgroup.h"

#define MIB		   (1ull << 20)
#define HOST_RESERVE_BYTES (512 * MIB)
/* The least that a kernel has. */
#define PID_MAX_DEFAULT 32768

void
group_limits_init(struct group_limits *l)
{
#define UNSET(keyword, type, member)                                           \
	l->member = (__typeof__(l->member))UINT64_MAX;
	GROUP_LIMIT_KEYS(UNSET)
}

unsigned
group_limits_set(const struct group_limits *l)
{
	return (l->tasks != UINT32_MAX ? CGROUP_COUNTS_PIDS : 0) |
	       (l->memory_bytes != UINT64_MAX ? CGROUP_COUNTS_MEMORY : 0);
}

void
group_limits_fill(struct group_limits *l, const struct group_limits *below)
{
#define FILL(keyword, type, member)                                            \
	if (l->member == (__typeof__(l->member))UINT64_MAX)                    \
		l->member = below->member;
	GROUP_LIMIT_KEYS(FILL)
}

/* --- what is left for the host ------------------------------------------ */

struct group_limits
group_limits_of(uint64_t memory_bytes, uint64_t pid_max)
{
	uint64_t left = memory_bytes / 10;

	if (left < HOST_RESERVE_BYTES)
		left = HOST_RESERVE_BYTES;
	if (left > memory_bytes / 2)
		left = memory_bytes / 2;
	return (struct group_limits){
		.memory_bytes = (memory_bytes - left) / MIB * MIB,
		.tasks = (uint32_t)(pid_max * 9 / 10),
	};
}

static uint64_t
read_pid_max(void)
{
	FILE *f = fopen("/proc/sys/kernel/pid_max", "re");
	unsigned long long n = 0;

	if (f != NULL) {
		if (fscanf(f, "%llu", &n) != 1)
			n = 0;
		fclose(f);
	}
	return n > 0 && n <= UINT32_MAX ? n : PID_MAX_DEFAULT;
}

uint64_t
group_limits_host_memory(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) *
	       (uint64_t)sysconf(_SC_PAGESIZE);
}

struct group_limits
group_limits_of_host(void)
{
	return group_limits_of(group_limits_host_memory(), read_pid_max());
}

/* --- what groups can hold here ------------------------------------------ */

static unsigned controllers;

const char *const group_controllers[GROUP_CONTROLLERS] = { "pids", "memory",
	"cpu", "io" };

static const struct need {
	const char *what;
	unsigned controller;
	const char *instead; /* what holds commands without it */
} needs[] = {
	{ "processes", CGROUP_COUNTS_PIDS,
	    "RLIMIT_NPROC holds sandboxed commands to command-tasks-max" },
	{ "memory", CGROUP_COUNTS_MEMORY,
	    "RLIMIT_DATA holds each process of sandboxed commands to "
	    "command-memory-max" },
	{ "processor time", CGROUP_COUNTS_CPU, "nothing limits it" },
};

void
group_limits_learn(unsigned there)
{
	controllers = there;
}

unsigned
group_limits_known(void)
{
	return controllers;
}

void
group_limits_log(bool root)
{
	if (controllers == 0 && !root) {
		log_info("control groups: none is delegated to this user; "
			 "resource limits hold sandboxed commands to "
			 "command-tasks-max and command-memory-max");
		return;
	}
	for (size_t i = 0; i < nitems(needs); i++)
		if (!(controllers & needs[i].controller))
			log_warn(0, "control groups: none here counts %s; %s",
			    needs[i].what, needs[i].instead);
}

int
group_limits_check(const char *section, const struct group_limits *l)
{
	const struct {
		const char *key, *what, *controller;
		unsigned bit;
		uint64_t value;
	} set[] = {
		{ "memory-max", "memory", "memory", CGROUP_COUNTS_MEMORY,
		    l->memory_bytes },
		{ "tasks-max", "processes", "pids", CGROUP_COUNTS_PIDS,
		    l->tasks },
		{ "cpu-quota", "processor time", "cpu", CGROUP_COUNTS_CPU,
		    l->cpu_percent },
		{ "cpu-weight", "processor time", "cpu", CGROUP_COUNTS_CPU,
		    l->cpu_weight },
		{ "io-weight", "input and output", "io, with io.weight",
		    CGROUP_COUNTS_IO, l->io_weight },
	};
	int err = 0;

	for (size_t i = 0; i < nitems(set); i++) {
		if (set[i].value == 0 || controllers & set[i].bit)
			continue;
		log_error(0,
		    "%s: %s: this host cannot enforce it: no control group "
		    "counts %s (controller %s; execd doctor)",
		    section, set[i].key, set[i].what, set[i].controller);
		err = -EOPNOTSUPP;
	}
	return err;
}

void
group_limits_reason(const char *identity, char *reason)
{
	snprintf(reason, 256,
	    "this host has no control groups for the limits of %.100s: "
	    "execd doctor tells which",
	    identity);
}
