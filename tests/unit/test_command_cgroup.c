/* SPDX-License-Identifier: ISC */
/*
 * groups: what the limits of a group did is told of once, also when its counts
 * cannot be read for a while.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "command_cgroup.h"

static char dir[] = "/tmp/execd-groups-XXXXXX";
static struct group g;

static int
make_place(void **state)
{
	g.cgroup = (struct cgroup)CGROUP_NONE;
	if (mkdtemp(dir) == NULL || chdir(dir) < 0)
		return -1;
	g.cgroup.dirs[CGROUP_UNIFIED] =
	    open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return 0;
}

static int
remove_place(void **state)
{
	cgroup_close(&g.cgroup);
	unlink("memory.events");
	unlink("pids.events");
	return rmdir(dir);
}

/* What the kernel would have counted. */
static void
happen(unsigned kills, unsigned denied)
{
	FILE *memory = fopen("memory.events", "w");
	FILE *pids = fopen("pids.events", "w");

	fprintf(memory, "oom 9\noom_kill %u\n", kills);
	fprintf(pids, "max %u\n", denied);
	fclose(memory);
	fclose(pids);
}

static void
check(uint64_t kills, uint64_t denied)
{
	struct command_cgroup_counts counts = command_cgroup_counts(&g);

	assert_int_equal(counts.memory_kills, kills);
	assert_int_equal(counts.forks_denied, denied);
	assert_true(command_cgroup_ran_out_of_memory(&g) == (kills > 0));
}

static void
test_told_once(void **state)
{
	struct rlimit all, none;

	happen(2, 3);
	check(2, 3);
	check(0, 0);
	happen(3, 3);
	check(1, 0);
	/* Nothing can be opened. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	none = (struct rlimit){ 0, all.rlim_max };
	happen(4, 5);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	check(0, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	check(1, 2);
	check(0, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told_once),
	};

	return cmocka_run_group_tests(tests, make_place, remove_place);
}
