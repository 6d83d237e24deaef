/* SPDX-License-Identifier: ISC */
/*
 * command_filter_compile() when an allocation in it fails: an error, a killed
 * process, or the very same program; never another one. libseccomp 2.5.4 by
 * itself returns success with rules left out for some of them, and for some
 * it does not return.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "command_filter.h"

/* One out of so many, and all of the first ones. */
#define STEP  43
#define FIRST 32

void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t size);
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static unsigned long calls, failing; /* 0: none fails */

static int
fails(void)
{
	if (++calls != failing)
		return 0;
	errno = ENOMEM;
	return 1;
}

void *
malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

void *
realloc(void *p, size_t size)
{
	return fails() ? NULL : __libc_realloc(p, size);
}

/* What never returns is not waited for as long as it may take. */
int
setitimer(__itimer_which_t which, const struct itimerval *restrict new,
    struct itimerval *restrict old)
{
	struct itimerval shorter = *new;

	if (shorter.it_value.tv_sec > 0)
		shorter.it_value = (struct timeval){ .tv_usec = 500000 };
	return (int)syscall(SYS_setitimer, which, &shorter, old);
}

static const struct command_filter_options options = { .network = true };

enum { SAME, REFUSED, OTHER };

static int
compile_failing(const struct command_filter *whole, unsigned long at)
{
	struct command_filter f;
	int err;

	calls = 0;
	failing = at;
	err = command_filter_compile(&f, &options);
	failing = 0;
	if (err != 0)
		return f.code == NULL ? REFUSED : OTHER;
	return f.len == whole->len &&
		       memcmp(f.code, whole->code, f.len * sizeof(*f.code)) == 0
		   ? SAME
		   : OTHER;
}

/* A crash (libseccomp frees twice) or the signal of the limit is a sandbox that
 * was not built; nobody wants to read of it. */
static void
be_quiet(void)
{
	int null_fd = open("/dev/null", O_RDWR);

	dup2(null_fd, STDOUT_FILENO);
	dup2(null_fd, STDERR_FILENO);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGABRT, SIG_DFL);
}

static int
run_failing(const struct command_filter *whole, unsigned long at)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		be_quiet();
		_exit(compile_failing(whole, at));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : REFUSED;
}

static void
test_each_allocation(void **state)
{
	struct command_filter whole;
	unsigned long total, refused = 0;

	calls = 0;
	assert_int_equal(command_filter_compile(&whole, &options), 0);
	total = calls;
	for (unsigned long at = 1; at <= total;
	     at += at < FIRST || at + FIRST > total ? 1 : STEP) {
		int result = run_failing(&whole, at);

		if (result == OTHER)
			fail_msg(
			    "allocation %lu of %lu: another filter", at, total);
		refused += result != SAME;
	}
	assert_true(refused > FIRST);
	printf("%lu allocations\n", total);
	command_filter_clear(&whole);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
