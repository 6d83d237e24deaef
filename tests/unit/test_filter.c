/* SPDX-License-Identifier: ISC */
/*
 * filter: a row is permitted, refused with its error, or the process dies, and
 * in a debugging build says of which call.
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "config.h"
#include "filter.h"
#include "util.h"

static const struct filter_rule rules[] = {
	{ .syscall = SCMP_SYS(write) },
	{ .syscall = SCMP_SYS(exit_group) },
	{ .syscall = SCMP_SYS(exit) },
	{ .syscall = SCMP_SYS(rt_sigreturn) },
	{ .syscall = SCMP_SYS(getpid), .error = EPERM },
	{ .syscall = SCMP_SYS(fcntl),
	    .compare = true,
	    .argument = 1,
	    .mask = UINT64_MAX,
	    .value = F_GETFD },
};

/* What a child without a sanitizer's help may do: only system calls. */
static void __attribute__((noreturn)) child(int (*act)(void), int out)
{
	if (dup2(out, STDERR_FILENO) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    filter_load(rules, nitems(rules)) < 0)
		_exit(99);
	syscall(SYS_exit_group, act());
	__builtin_unreachable();
}

/* Its wait status; what it wrote is in text. */
static int
run(int (*act)(void), char text[256])
{
	int status, pipes[2];
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child(act, pipes[1]);
	close(pipes[1]);
	n = read(pipes[0], text, 255);
	text[n > 0 ? n : 0] = '\0';
	close(pipes[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int
permitted(void)
{
	return syscall(SYS_fcntl, 2, F_GETFD) >= 0 ? 0 : 1;
}

static int
refused(void)
{
	return syscall(SYS_getpid) == -1 && errno == EPERM ? 0 : 1;
}

static int
unlisted(void)
{
	return (int)syscall(SYS_getppid);
}

static int
other_argument(void)
{
	return (int)syscall(SYS_fcntl, 2, F_GETFL);
}

static void
test_rows(void **state)
{
	char text[256];

	assert_int_equal(run(permitted, text), 0);
	assert_int_equal(run(refused, text), 0);
}

static void
check_denied(int (*act)(void), const char *name)
{
	char text[256];
	int status = run(act, text);

#if EXECD_SANDBOX_DEBUG
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 128 + SIGSYS);
	assert_non_null(strstr(text, "system call denied: "));
	assert_non_null(strstr(text, name));
#else
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
#endif
}

static void
test_denied(void **state)
{
	check_denied(unlisted, "getppid");
	check_denied(other_argument, "fcntl");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_denied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
