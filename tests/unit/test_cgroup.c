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

static void
test_limits(void **state)
{
	struct cgroup c = CGROUP_NONE;

	c.dirs[CGROUP_UNIFIED] = top;
	assert_int_equal(cgroup_limit(&c, 7, 8), 0); /* no controllers */
	put(top, "pids.max", "");
	put(top, "memory.max", "");
	assert_int_equal(cgroup_limit(&c, 512, 1ull << 40), 0);
	check(top, "pids.max", "512");
	check(top, "memory.max", "1099511627776");
	put(top, "pids.max", "");
	assert_int_equal(cgroup_limit(&c, 0, 0), 0);
	check(top, "pids.max", "max");

	c = (struct cgroup)CGROUP_NONE;
	c.dirs[CGROUP_MEMORY] = top;
	put(top, "memory.limit_in_bytes", "");
	assert_int_equal(cgroup_limit(&c, 512, 0), 0);
	check(top, "memory.limit_in_bytes", "-1");
}

static void
test_members(void **state)
{
	int joins[CGROUP_HIERARCHIES];
	struct cgroup c = CGROUP_NONE;

	assert_true(cgroup_is_empty(&c));
	assert_int_equal(cgroup_kill(&c), -ENOENT);
	c.dirs[CGROUP_UNIFIED] = top;
	put(top, "cgroup.procs", "");
	put(top, "cgroup.kill", "");
	assert_true(cgroup_is_empty(&c));
	cgroup_open_joins(&c, joins);
	assert_int_equal(joins[CGROUP_PIDS], -1);
	assert_int_equal(cgroup_join(joins), 0);
	close(joins[CGROUP_UNIFIED]);
	assert_false(cgroup_is_empty(&c));
	assert_int_equal(cgroup_kill(&c), 0);
	check(top, "cgroup.procs", "0");
	check(top, "cgroup.kill", "1");
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_make_and_remove),
		cmocka_unit_test(test_a_name_that_is_taken),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_kill_by_list),
		cmocka_unit_test(test_own),
	};

	return cmocka_run_group_tests(tests, make_place, remove_place);
}
