/*
 * command_filter on x86_64: x32 and i386 calls kill, or i386 has the same
 * policy.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "command_filter.h"
#include "command_filter_child.h"
#include "util.h"

static const struct command_filter_options strict;

static long
call_i386(long call, long a, long b, long c)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "0"(call), "b"(a), "c"(b), "d"(c)
			 : "memory", "cc", "r8", "r9", "r10", "r11");
	return result;
}

static int
getpid_i386(void)
{
	return call_i386(20, 0, 0, 0) != getpid();
}

static int
getpid_x32(void)
{
	syscall(0x40000000 | SYS_getpid);
	return 0;
}

static const struct {
	int call;
	long a, b, c;
	int error;
} calls_i386[] = {
	{ 26, -1, -1, -1, EPERM },		 /* ptrace */
	{ 22, -1, 0, 0, EPERM },		 /* umount */
	{ 25, -1, 0, 0, EPERM },		 /* stime */
	{ 404, -1, -1, 0, EPERM },		 /* clock_settime64 */
	{ 405, -1, -1, 0, EPERM },		 /* clock_adjtime64 */
	{ 102, 1, -1, 0, EPERM },		 /* socketcall: socket */
	{ 102, 16, -1, 0, EPERM },		 /* socketcall: sendmsg */
	{ 117, -1, -1, -1, EPERM },		 /* ipc */
	{ 359, AF_INET, SOCK_STREAM, 0, EPERM }, /* socket */
	{ 359, AF_UNIX, SOCK_DGRAM, 0, EPERM },
	{ 360, AF_UNIX, SOCK_DGRAM, 0, EPERM }, /* socketpair */
	{ 360, AF_UNIX, SOCK_STREAM, 0, 0 },
	{ 362, -1, 0, 0, EPERM },			    /* connect */
	{ 120, CLONE_THREAD | CLONE_NEWUSER, 0, 0, EPERM }, /* clone */
	{ 120, CLONE_THREAD, 0, 0, 0 },
	{ 435, 0, 0, 0, ENOSYS },   /* clone3 */
	{ 437, -1, 0, 0, ENOSYS },  /* openat2 */
	{ 15, 0, 04755, 0, EPERM }, /* chmod */
	{ 15, 0, 0755, 0, 0 },
	{ 136, ADDR_NO_RANDOMIZE, 0, 0, EPERM }, /* personality */
	{ 136, 0xffffffff, 0, 0, 0 },
	{ NR_statmount, 0, 0, 0, EPERM },
	{ NR_listmount, 0, 0, 0, EPERM },
	{ NR_open_tree_attr, -1, 0, 0, EPERM },
	{ NR_fchmodat2, -1, 0, 04755, EPERM },
	{ NR_fchmodat2, -1, 0, 02755, EPERM },
	{ NR_fchmodat2, -1, 0, 01755, 0 },
};

static int
policy_i386(void)
{
	for (size_t i = 0; i < nitems(calls_i386); i++) {
		long got = call_i386(calls_i386[i].call, calls_i386[i].a,
		    calls_i386[i].b, calls_i386[i].c);
		int error = calls_i386[i].error;

		if (error != 0 ? got != -(MARK + error) : got < -MARK) {
			dprintf(2, "i386 row %zu: %ld\n", i, got);
			return 1;
		}
	}
	return getpid_i386();
}

static void
assert_killed(int status)
{
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

static void
test_x32(void **state)
{
	const struct command_filter_options o = { .allow_32bit = true };

	assert_killed(run(&strict, getpid_x32));
	assert_killed(run(&o, getpid_x32));
}

static void
test_i386(void **state)
{
	const struct command_filter_options o = { .allow_32bit = true };

	if (run_under(NULL, 0, getpid_i386) != 0) {
		print_message("this kernel has no i386 calls\n");
		skip();
	}
	assert_killed(run(&strict, getpid_i386));
	assert_int_equal(run(&o, policy_i386), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x32),
		cmocka_unit_test(test_i386),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
