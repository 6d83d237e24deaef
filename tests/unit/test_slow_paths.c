/* SPDX-License-Identifier: ISC */
/*
 * Which paths lie on file systems that may not answer.
 */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "slow_paths.h"
#include "util.h"

static void
read_lines(struct slow_mounts *m, const char *lines)
{
	_cleanup_free_ char *text = xasprintf("%s", lines);

	slow_mounts_read(m, text);
}

static void
test_table(void **state)
{
	struct slow_mounts m = { 0 };

	read_lines(&m,
	    "21 1 8:1 / / rw - fuse.image /dev/root rw\n"
	    "22 21 0:5 / /proc rw shared:5 - proc proc rw\n"
	    "23 22 0:6 / /proc/sys/fs/binfmt_misc rw shared:6 - autofs x rw\n"
	    "24 21 0:7 /export /srv/a\\040b rw shared:7 master:1 - nfs4 h:/x rw\n"
	    "25 21 0:8 / /home rw - ext4 /dev/sdb rw\n"
	    "26 21 0:9 / /run/ssh rw - fuse.sshfs u@h:/ rw,user_id=0\n"
	    "27 21 0:10 / /run/fuse rw - fusectl none rw\n"
	    "28 21 0:11 / /run/broken rw nfs\n"
	    "29 - nfs x\n"
	    "\n");
	assert_int_equal(m.count, 2);
	assert_string_equal(m.points[0], "/srv/a b");
	assert_string_equal(m.points[1], "/run/ssh");
	read_lines(&m, "25 21 0:8 / /home rw - ext4 /dev/sdb rw\n");
	assert_int_equal(m.count, 0);
	slow_mounts_clear(&m);
}

/* The directory stands for a mount point: it is never opened. */
static char *
make_tree(struct slow_mounts *m)
{
	char *dir = xasprintf("/tmp/execd-slow-XXXXXX");
	_cleanup_free_ char *line = NULL;
	char old[PATH_MAX];

	assert_non_null(mkdtemp(dir));
	assert_non_null(getcwd(old, sizeof(old)));
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(mkdir("m", 0700), 0);
	assert_int_equal(mkdir("d", 0700), 0);
	assert_int_equal(symlink("m/x", "relative"), 0);
	assert_int_equal(symlink("../m", "d/up"), 0);
	assert_int_equal(symlink("loop", "loop"), 0);
	line = xasprintf("%s/m", dir);
	assert_int_equal(symlink(line, "absolute"), 0);
	free(line);
	line = xasprintf("24 21 0:7 / %s/m rw - nfs4 h:/x rw\n", dir);
	slow_mounts_read(m, line);
	assert_int_equal(m->count, 1);
	assert_int_equal(chdir(old), 0);
	return dir;
}

static void
remove_tree(char *dir)
{
	_cleanup_free_ char *command = xasprintf("rm -r %s", dir);

	assert_int_equal(system(command), 0);
	free(dir);
}

static void
test_paths(void **state)
{
	static const struct {
		const char *path;
		bool slow;
	} rows[] = { { "/m", true }, { "/m/", true }, { "/m/x/y", true },
		{ "//./m/..", true }, { "/d/../m", true },
		{ "/relative", true }, { "/absolute/z", true },
		{ "/d/up/z", true }, { "/d", false }, { "/mm", false },
		{ "/none/../m", false }, { "/loop/m", false },
		{ "/d/..", false } };
	struct slow_mounts m = { 0 };
	char *dir = make_tree(&m);

	for (size_t i = 0; i < nitems(rows); i++) {
		_cleanup_free_ char *path =
		    xasprintf("%s%s", dir, rows[i].path);

		if (slow_mounts_have(&m, path) != rows[i].slow)
			fail_msg("%s", rows[i].path);
	}
	assert_false(slow_mounts_have(&m, "m"));
	assert_false(slow_mounts_have(NULL, dir));
	slow_mounts_clear(&m);
	remove_tree(dir);
}

static void
write_script(const char *path, const char *text)
{
	_cleanup_close_ int fd =
	    open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void
test_start(void **state)
{
	struct slow_mounts m = { 0 };
	char *dir = make_tree(&m);
	_cleanup_free_ char *mount = xasprintf("%s/m", dir);
	_cleanup_free_ char *script = xasprintf("%s/script", dir);
	_cleanup_free_ char *line = xasprintf("#! %s/m/sh -x\n", dir);
	_cleanup_free_ char *there = xasprintf("%s/m/sh", dir);
	char **paths;

	write_script(script, line);
	paths = slow_paths_of_start(
	    &m, dir, (const char *[]){ "/bin/sh", there, NULL });
	assert_null(paths);
	paths = slow_paths_of_start(
	    &m, dir, (const char *[]){ "m/none", "/bin/sh", there, NULL });
	assert_non_null(paths);
	assert_null(paths[1]);
	slow_paths_free(paths);
	paths = slow_paths_of_start(
	    &m, mount, (const char *[]){ "/none", script, NULL });
	assert_string_equal(paths[0], mount);
	assert_string_equal(paths[1], there);
	assert_null(paths[2]);
	slow_paths_free(paths);
	slow_mounts_clear(&m);
	remove_tree(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
