/* SPDX-License-Identifier: ISC */
/*
 * Which limits control groups can have, and how they are set.
 */
#include "base.h"
#include "cgroup.h"

/* A tenth of a second, the kernel's default. */
#define CPU_PERIOD_US 100000

static bool
has_file(int dir, const char *name)
{
	return dir >= 0 && faccessat(dir, name, F_OK, 0) == 0;
}

static const struct {
	unsigned controller;
	const char *name; /* of the controller in version 2 */
	enum cgroup_hierarchy hierarchy;
	/* exists in version 1 if it has this controller, also in the root
	 * group */
	const char *file; /* NULL: version 2 only */
} kinds[] = {
	{ CGROUP_COUNTS_PIDS, "pids", CGROUP_PIDS, "cgroup.procs" },
	{ CGROUP_COUNTS_MEMORY, "memory", CGROUP_MEMORY,
	    "memory.limit_in_bytes" },
	{ CGROUP_COUNTS_CPU, "cpu", CGROUP_CPU, "cpu.cfs_period_us" },
	{ CGROUP_COUNTS_IO, "io", CGROUP_UNIFIED, NULL },
};

/* Reads a list such as "cpu memory pids" and returns the known controllers. */
static unsigned
read_controllers(int dir, const char *file)
{
	char text[1024], *rest = text, *word;
	unsigned found = 0;

	if (dir < 0 || read_whole(dir, file, text, sizeof(text)) < 0)
		return 0;
	while ((word = strsep(&rest, " \n")) != NULL)
		for (size_t i = 0; i < nitems(kinds); i++)
			if (strcmp(word, kinds[i].name) == 0)
				found |= kinds[i].controller;
	return found;
}

static unsigned
find_controllers(const struct cgroup *parent, const char *unified)
{
	unsigned found =
	    read_controllers(parent->dirs[CGROUP_UNIFIED], unified);

	for (size_t i = 0; i < nitems(kinds); i++)
		if (kinds[i].file != NULL &&
		    has_file(parent->dirs[kinds[i].hierarchy], kinds[i].file))
			found |= kinds[i].controller;
	return found;
}

unsigned
cgroup_available(const struct cgroup *c)
{
	return find_controllers(c, "cgroup.controllers");
}

/* A kernel without CONFIG_BLK_CGROUP_IOCOST and BFQ has the controller and no
 * weight. Only a group below another has the file. */
static bool
has_io_weight(int dir)
{
	return has_file(dir, "io.weight") || has_file(dir, "io.bfq.weight");
}

unsigned
cgroup_controllers(const struct cgroup *parent)
{
	unsigned found = find_controllers(parent, "cgroup.subtree_control");

	return found & CGROUP_COUNTS_IO &&
		       !has_io_weight(parent->dirs[CGROUP_UNIFIED])
		   ? found & ~(unsigned)CGROUP_COUNTS_IO
		   : found;
}

static int
set_subtree(const struct cgroup *c, unsigned controllers, char sign)
{
	char text[64] = "";
	size_t n = 0;

	for (size_t i = 0; i < nitems(kinds); i++)
		if (controllers & kinds[i].controller)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
			    "%s%c%s", n > 0 ? " " : "", sign, kinds[i].name);
	return n == 0 ? 0
		      : write_whole(c->dirs[CGROUP_UNIFIED],
			    "cgroup.subtree_control", text);
}

int
cgroup_hand_down(const struct cgroup *c)
{
	int dir = c->dirs[CGROUP_UNIFIED];

	return set_subtree(c, read_controllers(dir, "cgroup.controllers"), '+');
}

int
cgroup_take_back(const struct cgroup *c)
{
	int dir = c->dirs[CGROUP_UNIFIED];

	return set_subtree(
	    c, read_controllers(dir, "cgroup.subtree_control"), '-');
}

/* Writes the number, or for 0 what says so. */
static int
set(int dir, const char *name, uint64_t value, const char *zero)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return write_whole(dir, name, value > 0 ? text : zero);
}

/* Some kernels do not have the file; that is no error. */
static int
optional(int err)
{
	return err == -ENOENT ? 0 : err;
}

static int
limit_pids(const struct cgroup *c, const struct cgroup_limits *l)
{
	int v1 = c->dirs[CGROUP_PIDS];

	if (l->pids == 0 && !l->again)
		return 0;
	return set(
	    v1 >= 0 ? v1 : c->dirs[CGROUP_UNIFIED], "pids.max", l->pids, "max");
}

/* Memory is limited together with swap, so that a group cannot exceed its limit
 * by swapping. */
static int
limit_memory(const struct cgroup *c, const struct cgroup_limits *l)
{
	int v1 = c->dirs[CGROUP_MEMORY], v2 = c->dirs[CGROUP_UNIFIED], err;
	uint64_t bytes = l->memory_bytes;

	if (bytes == 0 && !l->again)
		return 0;
	/* Else version 1 refuses a limit above the one with swap. */
	if (v1 >= 0 && l->again)
		(void)set(v1, "memory.memsw.limit_in_bytes", 0, "-1");
	err = v1 >= 0 ? set(v1, "memory.limit_in_bytes", bytes, "-1")
		      : set(v2, "memory.max", bytes, "max");
	if (err < 0 || bytes == 0 || l->may_swap)
		return err;
	return optional(
	    v1 >= 0 ? set(v1, "memory.memsw.limit_in_bytes", bytes, "-1")
		    : set(v2, "memory.swap.max", 0, "0"));
}

/* Version 1 cannot do this; it kills a single process. */
static int
end_together(const struct cgroup *c)
{
	return c->dirs[CGROUP_MEMORY] >= 0
		   ? 0
		   : optional(set(
			 c->dirs[CGROUP_UNIFIED], "memory.oom.group", 1, "0"));
}

static int
limit_cpu(const struct cgroup *c, const struct cgroup_limits *l)
{
	uint64_t quota_us = (uint64_t)l->cpu_percent * (CPU_PERIOD_US / 100);
	int v1 = c->dirs[CGROUP_CPU], err = 0;
	char text[64];

	if (quota_us == 0 && !l->again)
		return 0;
	if (v1 < 0) {
		snprintf(text, sizeof(text), "%llu %d",
		    (unsigned long long)quota_us, CPU_PERIOD_US);
		return write_whole(c->dirs[CGROUP_UNIFIED], "cpu.max",
		    quota_us > 0 ? text : "max");
	}
	if (quota_us > 0)
		err = set(v1, "cpu.cfs_period_us", CPU_PERIOD_US, "");
	if (err == 0)
		err = set(v1, "cpu.cfs_quota_us", quota_us, "-1");
	/* Version 1 refuses a limit above that of a parent group. The parent's
	 * limit then applies, so this is no error. */
	return err == -EINVAL ? 0 : err;
}

/* 100 is what the kernel gives to a group; in version 1 that is 1024 shares. */
static int
weigh_cpu(const struct cgroup *c, const struct cgroup_limits *l)
{
	uint64_t weight = l->cpu_weight > 0 ? l->cpu_weight : 100;
	int v1 = c->dirs[CGROUP_CPU];

	if (l->cpu_weight == 0 && !l->again)
		return 0;
	return v1 < 0 ? set(c->dirs[CGROUP_UNIFIED], "cpu.weight", weight, "")
		      : set(v1, "cpu.shares", weight * 1024 / 100, "");
}

/* The file's name depends on who schedules the disks. Where nobody weighs,
 * nobody has another weight. */
static int
weigh_io(const struct cgroup *c, const struct cgroup_limits *l)
{
	int dir = c->dirs[CGROUP_UNIFIED], err;

	if (l->io_weight == 0 && !l->again)
		return 0;
	err = set(dir, "io.weight", l->io_weight, "100");
	if (err == -ENOENT)
		err = set(dir, "io.bfq.weight", l->io_weight, "100");
	return l->io_weight == 0 ? optional(err) : err;
}

int
cgroup_limit(
    const struct cgroup *c, const struct cgroup_limits *l, unsigned controllers)
{
	int err = 0;

	if (controllers & CGROUP_COUNTS_PIDS)
		err = limit_pids(c, l);
	if (err == 0 && controllers & CGROUP_COUNTS_MEMORY)
		err = limit_memory(c, l);
	if (err == 0 && controllers & CGROUP_COUNTS_MEMORY && l->end_together)
		err = end_together(c);
	if (err == 0 && controllers & CGROUP_COUNTS_CPU)
		err = limit_cpu(c, l);
	if (err == 0 && controllers & CGROUP_COUNTS_CPU)
		err = weigh_cpu(c, l);
	if (err == 0 && controllers & CGROUP_COUNTS_IO)
		err = weigh_io(c, l);
	return err;
}
