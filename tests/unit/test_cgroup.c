/* SPDX-License-Identifier: ISC */
/*
 * cgroup: the calls of a group on directories that look like one, and where
 * this process is.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cgroup.h"
#include "util.h"

static char dir[64];
static int top;

static int
make_place(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/execd-cgroup-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return top < 0 ? -1 : 0;
}

static int
remove_place(void **state)
{
	close(top);
	return rmdir(dir);
}

static void
put(int at, const char *name, const char *text)
{
	int fd = openat(at, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void
check(int at, const char *name, const char *want)
{
	char text[64] = "";
	int fd = openat(at, name, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	close(fd);
	assert_string_equal(text, want);
	assert_int_equal(unlinkat(at, name, 0), 0);
}

static void
test_make_and_remove(void **state)
{
	struct cgroup parent = CGROUP_NONE, c;

	assert_false(cgroup_is_open(&parent));
	assert_int_equal(cgroup_make(&parent, "none", &c), 0);
	assert_false(cgroup_is_open(&c));
	parent.dirs[CGROUP_PIDS] = top;
	assert_int_equal(cgroup_make(&parent, "one", &c), 0);
	assert_true(cgroup_is_open(&c));
	assert_int_equal(c.dirs[CGROUP_UNIFIED], -1);
	cgroup_close(&c);
	assert_false(cgroup_is_open(&c));
	assert_int_equal(cgroup_make(&parent, "one", &c), 0); /* is there */
	cgroup_close(&c);
	cgroup_remove(&parent, "one");
	assert_int_equal(faccessat(top, "one", F_OK, 0), -1);
}

/* A link of that name is not followed, and nothing is left open. */
static void
test_a_name_that_is_taken(void **state)
{
	struct cgroup parent = CGROUP_NONE, c;

	parent.dirs[CGROUP_PIDS] = top;
	assert_int_equal(symlinkat("/tmp", top, "one"), 0);
	assert_true(cgroup_make(&parent, "one", &c) < 0);
	assert_false(cgroup_is_open(&c));
	assert_int_equal(unlinkat(top, "one", 0), 0);
}

#define ALL (CGROUP_COUNTS_PIDS | CGROUP_COUNTS_MEMORY | CGROUP_COUNTS_CPU)

static void
test_limits(void **state)
{
	const struct cgroup_limits l = { .pids = 512,
		.memory_bytes = 1ull << 40,
		.cpu_percent = 150 },
				   none = { 0 };
	struct cgroup c = CGROUP_NONE;

	c.dirs[CGROUP_UNIFIED] = top;
	/* What is said to be in force is, or it is an error. */
	assert_int_equal(cgroup_limit(&c, &l, 0), 0);
	assert_int_equal(cgroup_limit(&c, &l, CGROUP_COUNTS_PIDS), -ENOENT);
	put(top, "pids.max", "");
	assert_int_equal(cgroup_limit(&c, &l, ALL), -ENOENT);
	put(top, "memory.max", "");
	put(top, "memory.swap.max", "");
	assert_int_equal(cgroup_limit(&c, &l, ALL), -ENOENT);
	put(top, "cpu.max", "");
	put(top, "memory.oom.group", "");
	assert_int_equal(cgroup_limit(&c, &l, ALL), 0);
	check(top, "pids.max", "512");
	check(top, "memory.max", "1099511627776");
	check(top, "memory.swap.max", "0");
	check(top, "memory.oom.group", "");
	check(top, "cpu.max", "150000 100000");
	put(top, "pids.max", "");
	put(top, "cpu.max", "");
	assert_int_equal(
	    cgroup_limit(&c, &none, CGROUP_COUNTS_PIDS | CGROUP_COUNTS_CPU), 0);
	check(top, "pids.max", "");
	check(top, "cpu.max", "");
}

static void
test_limits_of_version_1(void **state)
{
	struct cgroup_limits l = {
		.pids = 512, .cpu_percent = 50, .end_together = true
	};
	struct cgroup c = CGROUP_NONE;

	c.dirs[CGROUP_MEMORY] = c.dirs[CGROUP_CPU] = top;
	put(top, "memory.limit_in_bytes", "");
	put(top, "cpu.cfs_period_us", "");
	put(top, "cpu.cfs_quota_us", "");
	assert_int_equal(
	    cgroup_limit(&c, &l, CGROUP_COUNTS_MEMORY | CGROUP_COUNTS_CPU), 0);
	check(top, "memory.limit_in_bytes", "");
	check(top, "cpu.cfs_quota_us", "50000");
	check(top, "cpu.cfs_period_us", "100000");
	put(top, "memory.limit_in_bytes", "");
	put(top, "memory.memsw.limit_in_bytes", "");
	l.memory_bytes = 4096;
	assert_int_equal(cgroup_limit(&c, &l, CGROUP_COUNTS_MEMORY), 0);
	check(top, "memory.limit_in_bytes", "4096");
	check(top, "memory.memsw.limit_in_bytes", "4096");
	put(top, "memory.limit_in_bytes", "");
	put(top, "memory.memsw.limit_in_bytes", "");
	l.may_swap = true;
	assert_int_equal(cgroup_limit(&c, &l, CGROUP_COUNTS_MEMORY), 0);
	check(top, "memory.limit_in_bytes", "4096");
	check(top, "memory.memsw.limit_in_bytes", "");
}

static void
test_weights(void **state)
{
	const struct cgroup_limits l = { .cpu_weight = 50, .io_weight = 10000 };
	struct cgroup c = CGROUP_NONE;

	c.dirs[CGROUP_UNIFIED] = top;
	assert_int_equal(cgroup_limit(&c, &l, CGROUP_COUNTS_CPU), -ENOENT);
	assert_int_equal(cgroup_limit(&c, &l, CGROUP_COUNTS_IO), -ENOENT);
	put(top, "cpu.weight", "");
	put(top, "io.bfq.weight", "");
	assert_int_equal(
	    cgroup_limit(&c, &l, CGROUP_COUNTS_CPU | CGROUP_COUNTS_IO), 0);
	check(top, "cpu.weight", "50");
	check(top, "io.bfq.weight", "10000");
	put(top, "io.weight", "");
	assert_int_equal(cgroup_limit(&c, &l, CGROUP_COUNTS_IO), 0);
	check(top, "io.weight", "10000");
	c.dirs[CGROUP_CPU] = top;
	put(top, "cpu.shares", "");
	assert_int_equal(cgroup_limit(&c, &l, CGROUP_COUNTS_CPU), 0);
	check(top, "cpu.shares", "512");
}

/* Version 1 counts where the hierarchy is, version 2 what is handed down. */
static void
test_controllers(void **state)
{
	struct cgroup c = CGROUP_NONE;

	assert_int_equal(cgroup_controllers(&c), 0);
	c.dirs[CGROUP_UNIFIED] = top;
	assert_int_equal(cgroup_controllers(&c), 0);
	put(top, "cgroup.subtree_control", "cpu io pids\n");
	/* A kernel may have the controller and no weights. */
	assert_int_equal(
	    cgroup_controllers(&c), CGROUP_COUNTS_CPU | CGROUP_COUNTS_PIDS);
	put(top, "io.bfq.weight", "");
	assert_int_equal(cgroup_controllers(&c),
	    CGROUP_COUNTS_CPU | CGROUP_COUNTS_IO | CGROUP_COUNTS_PIDS);
	check(top, "cgroup.subtree_control", "cpu io pids\n");
	c.dirs[CGROUP_MEMORY] = top;
	put(top, "memory.limit_in_bytes", "");
	assert_int_equal(cgroup_controllers(&c), CGROUP_COUNTS_MEMORY);
	check(top, "memory.limit_in_bytes", "");
	check(top, "io.bfq.weight", "");
}

static void
test_handing_down(void **state)
{
	struct cgroup c = CGROUP_NONE;

	c.dirs[CGROUP_UNIFIED] = top;
	put(top, "cgroup.controllers", "cpuset io memory\n");
	assert_int_equal(cgroup_hand_down(&c), -ENOENT);
	put(top, "cgroup.subtree_control", "");
	assert_int_equal(cgroup_hand_down(&c), 0);
	/* In one write: a group with members takes some alone. */
	check(top, "cgroup.subtree_control", "+memory +io");
	check(top, "cgroup.controllers", "cpuset io memory\n");
	/* Nothing to hand down is no error. */
	assert_int_equal(cgroup_hand_down(&c), 0);
}

static void
test_members(void **state)
{
	int joins[CGROUP_HIERARCHIES];
	struct cgroup c = CGROUP_NONE;

	assert_true(cgroup_is_empty(&c));
	assert_int_equal(cgroup_kill(&c), -ENOENT);
	assert_int_equal(cgroup_open_joins(&c, joins), 0); /* none to join */
	assert_int_equal(joins[CGROUP_UNIFIED], -1);
	c.dirs[CGROUP_UNIFIED] = top;
	put(top, "cgroup.procs", "");
	put(top, "cgroup.kill", "");
	assert_true(cgroup_is_empty(&c));
	assert_int_equal(cgroup_open_joins(&c, joins), 0);
	assert_int_equal(joins[CGROUP_PIDS], -1);
	assert_int_equal(cgroup_join(joins, false), 0);
	cgroup_close_joins(joins);
	assert_false(cgroup_is_empty(&c));
	assert_int_equal(cgroup_kill(&c), 0);
	check(top, "cgroup.procs", "0");
	check(top, "cgroup.kill", "1");
}

/* A group that cannot be joined in one hierarchy is not joined in another. */
static void
test_a_group_that_cannot_be_joined(void **state)
{
	struct cgroup c = CGROUP_NONE;
	int joins[CGROUP_HIERARCHIES];

	c.dirs[CGROUP_UNIFIED] = c.dirs[CGROUP_MEMORY] = top;
	put(top, "cgroup.procs", "");
	assert_int_equal(cgroup_open_joins(&c, joins), -ENOENT);
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		assert_int_equal(joins[i], -1);
	assert_int_equal(unlinkat(top, "cgroup.procs", 0), 0);
}

static void
test_kills_for_want_of_memory(void **state)
{
	struct cgroup c = CGROUP_NONE;
	int fd;

	assert_true(cgroup_open_oom(&c) < 0);
	assert_int_equal(cgroup_oom_kills(&c), 0);
	c.dirs[CGROUP_MEMORY] = top;
	put(top, "memory.oom_control", "under_oom 0\noom_kill 3\n");
	assert_int_equal(cgroup_oom_kills(&c), 3);
	fd = cgroup_open_oom(&c);
	put(top, "memory.oom_control", "oom_kill 4\n");
	assert_int_equal(cgroup_read_oom(fd), 4);
	close(fd);
	assert_int_equal(unlinkat(top, "memory.oom_control", 0), 0);
}

/* Version 1: no forks any more, then the list; our own pid is none of it. */
static void
test_kill_by_list(void **state)
{
	struct cgroup c = CGROUP_NONE;
	char list[64];
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	c.dirs[CGROUP_PIDS] = top;
	snprintf(list, sizeof(list), "0\n%d\n", pid);
	put(top, "cgroup.procs", list);
	put(top, "pids.max", "");
	assert_int_equal(cgroup_kill(&c), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	check(top, "pids.max", "0");
	assert_int_equal(unlinkat(top, "cgroup.procs", 0), 0);
}

/* Of what this host has, each group that opens is one that this process is
 * in. */
static void
test_own(void **state)
{
	struct cgroup c = CGROUP_NONE;

	cgroup_open_own(&c);
	if (!cgroup_is_open(&c))
		skip();
	assert_false(cgroup_is_empty(&c));
	assert_true(c.dirs[CGROUP_UNIFIED] < 0 || c.dirs[CGROUP_PIDS] < 0);
	cgroup_close(&c);
}

/* Any combination arrives as it was; what does not add up is none. */
static void
test_on_its_way(void **state)
{
	for (unsigned bits = 0; bits < 1u << CGROUP_HIERARCHIES; bits++) {
		struct cgroup c = CGROUP_NONE, got;
		int dirs[CGROUP_HIERARCHIES];
		uint8_t told = 0xff;
		size_t n;

		for (int i = 0; i < CGROUP_HIERARCHIES; i++)
			c.dirs[i] = bits & 1u << i ? 100 + i : -1;
		n = cgroup_put(&c, &told, dirs);
		assert_int_equal(told, bits);
		assert_int_equal(cgroup_get(&got, told, dirs, n), 0);
		assert_memory_equal(&got, &c, sizeof(c));
		assert_int_equal(cgroup_get(&got, told, dirs, n + 1), -EBADMSG);
		assert_false(cgroup_is_open(&got));
		if (n > 0)
			assert_int_equal(
			    cgroup_get(&got, told, dirs, n - 1), -EBADMSG);
		assert_int_equal(
		    cgroup_get(&got, (uint8_t)(told | 1u << CGROUP_HIERARCHIES),
			dirs, n + 1),
		    -EBADMSG);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_make_and_remove),
		cmocka_unit_test(test_a_name_that_is_taken),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_limits_of_version_1),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_controllers),
		cmocka_unit_test(test_handing_down),
		cmocka_unit_test(test_a_group_that_cannot_be_joined),
		cmocka_unit_test(test_kills_for_want_of_memory),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_kill_by_list),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_on_its_way),
	};

	return cmocka_run_group_tests(tests, make_place, remove_place);
}
