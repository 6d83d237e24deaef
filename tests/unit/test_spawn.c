/* SPDX-License-Identifier: ISC */
/*
 * spawn: where programs are looked for, and that every failure comes back as
 * its step and errno with nothing left open.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "spawn.h"
#include "util.h"

static void
check_candidates(const char *program, const char *path, const char *want)
{
	_cleanup_free_ char **list = spawn_candidates(program, path);
	char joined[512] = "";

	for (char **c = list; *c != NULL; c++) {
		strcat(joined, *c);
		strcat(joined, c[1] ? " " : "");
	}
	assert_string_equal(joined, want);
}

static void
test_candidates(void **state)
{
	check_candidates("/bin/true", "/x", "/bin/true");
	check_candidates("./t", "/x", "./t");
	check_candidates("t", "/a:/b", "/a/t /b/t");
	check_candidates("t", "", "");
	check_candidates("t", NULL, "/usr/bin/t /bin/t");
	check_candidates("t", ":/b", "t /b/t");
	check_candidates("t", "/a:", "/a/t t");
	check_candidates("t", "/a::/b", "/a/t t /b/t");
	check_candidates("t", ":", "t t");
}

static unsigned
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static int
try_spawn(const char *program, const char *cwd, bool tty, bool may_wait,
    struct spawn_result *res, struct spawn_fault *fault)
{
	_cleanup_free_ char **candidates = spawn_candidates(program, NULL);
	char *argv[] = { (char *)(uintptr_t) "x", NULL };
	char *envp[] = { NULL };
	_cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct spawn_request r = {
		.candidates = (const char *const *)candidates,
		.argv = argv,
		.envp = envp,
		.cwd = cwd,
		.tty = tty,
		.rows = 24,
		.cols = 80,
		.null_fd = null,
		.may_wait = may_wait,
	};

	return spawn(&r, res, fault);
}

static void
test_failures(void **state)
{
	static const struct {
		const char *program, *cwd;
		int err;
		const char *step;
	} rows[] = {
		{ "/nonexistent/program", "/", -ENOENT, "exec" },
		{ "no-such-program-here", "/", -ENOENT, "exec" },
		{ "/tmp", "/", -EACCES, "exec" },
		{ "/etc/passwd", "/", -EACCES, "exec" },
		{ "/etc/passwd/x", "/", -ENOTDIR, "exec" },
		{ "/bin/true", "/nonexistent", -ENOENT, "working directory" },
		{ "/bin/true", "/etc/passwd", -ENOTDIR, "working directory" },
	};

	for (size_t i = 0; i < 2 * nitems(rows); i++) {
		unsigned before = open_fds();
		struct spawn_result res;
		struct spawn_fault fault;

		assert_int_equal(try_spawn(rows[i / 2].program, rows[i / 2].cwd,
				     i % 2, false, &res, &fault),
		    rows[i / 2].err);
		assert_string_equal(fault.step, rows[i / 2].step);
		assert_int_equal(open_fds(), before);
		while (wait(NULL) > 0)
			continue;
		assert_int_equal(try_spawn(rows[i / 2].program, rows[i / 2].cwd,
				     i % 2, true, &res, &fault),
		    0);
		assert_int_equal(waitpid(res.pid, NULL, 0), res.pid);
		assert_int_equal(
		    read(res.starting, &fault, sizeof(fault)), sizeof(fault));
		assert_int_equal(fault.err, rows[i / 2].err);
		assert_string_equal(fault.step, rows[i / 2].step);
		assert_int_equal(read(res.starting, &fault, 1), 0);
		close(res.starting);
		close(res.in);
		close(res.out);
		close(res.err);
		assert_int_equal(open_fds(), before);
		while (wait(NULL) > 0)
			continue;
	}
}

static void
test_success(void **state)
{
	for (int i = 0; i < 4; i++) {
		struct spawn_fault fault;
		struct spawn_result res;
		int tty = i % 2;
		int status;

		assert_int_equal(
		    try_spawn("true", "/", tty, i > 1, &res, &fault), 0);
		assert_int_equal(waitpid(res.pid, &status, 0), res.pid);
		assert_int_equal(status, 0);
		assert_true(fcntl(res.out, F_GETFL) & O_NONBLOCK);
		assert_int_equal(fcntl(res.out, F_GETFD), FD_CLOEXEC);
		assert_int_equal(res.err >= 0, !tty);
		assert_int_equal(res.in >= 0, tty);
		close(res.out);
		close(tty ? res.in : res.err);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_candidates),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_success),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
