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

	if (dir < 0 || cgroup_read_file(dir, file, text, sizeof(text)) < 0)
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

static int
write_number(int dir, const char *name, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return write_whole(dir, name, text);
}

/* Some kernels do not have the file; that is no error. */
static int
write_optional(int dir, const char *name, uint64_t value)
{
	int err = write_number(dir, name, value);

	return err == -ENOENT ? 0 : err;
}

static int
limit_pids(const struct cgroup *c, uint64_t pids, bool again)
{
	int v1 = c->dirs[CGROUP_PIDS];
	int dir = v1 >= 0 ? v1 : c->dirs[CGROUP_UNIFIED];

	if (pids > 0)
		return write_number(dir, "pids.max", pids);
	return again ? write_whole(dir, "pids.max", "max") : 0;
}

/* Memory is limited together with swap, so that a group cannot exceed its limit
 * by swapping. */
static int
limit_memory(const struct cgroup *c, uint64_t bytes, bool may_swap, bool again)
{
	int v1 = c->dirs[CGROUP_MEMORY], v2 = c->dirs[CGROUP_UNIFIED], err;

	if (bytes == 0 && !again)
		return 0;
	/* Else version 1 refuses a limit above the one with swap. */
	if (v1 >= 0 && again)
		(void)write_whole(v1, "memory.memsw.limit_in_bytes", "-1");
	if (bytes == 0)
		return v1 >= 0 ? write_whole(v1, "memory.limit_in_bytes", "-1")
			       : write_whole(v2, "memory.max", "max");
	if (v1 >= 0) {
		err = write_number(v1, "memory.limit_in_bytes", bytes);
		return err < 0 || may_swap
			   ? err
			   : write_optional(
				 v1, "memory.memsw.limit_in_bytes", bytes);
	}
	err = write_number(v2, "memory.max", bytes);
	return err < 0 || may_swap ? err
				   : write_optional(v2, "memory.swap.max", 0);
}

/* Version 1 cannot do this; it kills a single process. */
static int
end_together(const struct cgroup *c)
{
	return c->dirs[CGROUP_MEMORY] >= 0
		   ? 0
		   : write_optional(
			 c->dirs[CGROUP_UNIFIED], "memory.oom.group", 1);
}

static int
limit_cpu(const struct cgroup *c, uint32_t percent, bool again)
{
	uint64_t quota_us = (uint64_t)percent * (CPU_PERIOD_US / 100);
	int v1 = c->dirs[CGROUP_CPU], err;
	char text[64];

	if (percent == 0 && !again)
		return 0;
	if (percent == 0)
		return v1 < 0 ? write_whole(
				    c->dirs[CGROUP_UNIFIED], "cpu.max", "max")
			      : write_whole(v1, "cpu.cfs_quota_us", "-1");
	if (v1 < 0) {
		snprintf(text, sizeof(text), "%llu %d",
		    (unsigned long long)quota_us, CPU_PERIOD_US);
		return write_whole(c->dirs[CGROUP_UNIFIED], "cpu.max", text);
	}
	err = write_number(v1, "cpu.cfs_period_us", CPU_PERIOD_US);
	if (err == 0)
		err = write_number(v1, "cpu.cfs_quota_us", quota_us);
	/* Version 1 refuses a limit above that of a parent group. The parent's
	 * limit then applies, so this is no error. */
	return err == -EINVAL ? 0 : err;
}

/* Returns what is written: 0 is nothing, 100 what the kernel gives to a group.
 */
static uint64_t
weight_of(uint32_t weight, bool again)
{
	return weight == 0 && again ? 100 : weight;
}

/* In version 1 who has no weight has 1024 shares. */
static int
weigh_cpu(const struct cgroup *c, uint64_t weight)
{
	int v1 = c->dirs[CGROUP_CPU], v2 = c->dirs[CGROUP_UNIFIED];

	return weight == 0 ? 0
	       : v1 < 0	   ? write_number(v2, "cpu.weight", weight)
			: write_number(v1, "cpu.shares", weight * 1024 / 100);
}

/* The file's name depends on who schedules the disks. */
static int
weigh_io(const struct cgroup *c, uint64_t weight)
{
	int dir = c->dirs[CGROUP_UNIFIED];
	int err = weight == 0 ? 0 : write_number(dir, "io.weight", weight);

	return err == -ENOENT ? write_number(dir, "io.bfq.weight", weight)
			      : err;
}

int
cgroup_limit(
    const struct cgroup *c, const struct cgroup_limits *l, unsigned controllers)
{
	int err = 0;

	if (controllers & CGROUP_COUNTS_PIDS)
		err = limit_pids(c, l->pids, l->again);
	if (err == 0 && controllers & CGROUP_COUNTS_MEMORY)
		err = limit_memory(c, l->memory_bytes, l->may_swap, l->again);
	if (err == 0 && controllers & CGROUP_COUNTS_MEMORY && l->end_together)
		err = end_together(c);
	if (err == 0 && controllers & CGROUP_COUNTS_CPU)
		err = limit_cpu(c, l->cpu_percent, l->again);
	if (err == 0 && controllers & CGROUP_COUNTS_CPU)
		err = weigh_cpu(c, weight_of(l->cpu_weight, l->again));
	if (err == 0 && controllers & CGROUP_COUNTS_IO) {
		err = weigh_io(c, weight_of(l->io_weight, l->again));
		/* Where nobody weighs, nobody has another weight. */
		if (err == -ENOENT && l->io_weight == 0)
			err = 0;
	}
	return err;
}
