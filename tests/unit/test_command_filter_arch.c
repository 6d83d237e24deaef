/* SPDX-License-Identifier: ISC */
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

struct call_i386 {
	int call;
	long a, b, c;
	int error;
};

static const struct call_i386 calls_i386[] = {
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
	{ 136, ADDR_COMPAT_LAYOUT, 0, 0, EPERM }, /* personality */
	{ 136, ADDR_NO_RANDOMIZE, 0, 0, 0 },
	{ 136, 0, 0, 0, 0 },
	{ 136, 0xffffffff, 0, 0, 0 },
	{ NR_statmount, 0, 0, 0, EPERM },
	{ NR_listmount, 0, 0, 0, EPERM },
	{ NR_open_tree_attr, -1, 0, 0, EPERM },
	{ NR_fchmodat2, -1, 0, 04755, EPERM },
	{ NR_fchmodat2, -1, 0, 02755, EPERM },
	{ NR_fchmodat2, -1, 0, 01755, 0 },
};

/* And where there is no view. */
static const struct call_i386 no_view_i386[] = {
	{ 16, 0, -1, -1, EPERM },	  /* lchown16 */
	{ 95, -1, -1, -1, EPERM },	  /* fchown16 */
	{ 182, 0, -1, -1, EPERM },	  /* chown16 */
	{ 198, 0, -1, -1, EPERM },	  /* lchown32 */
	{ 207, -1, -1, -1, EPERM },	  /* fchown32 */
	{ 212, 0, -1, -1, EPERM },	  /* chown32 */
	{ 298, -1, 0, -1, EPERM },	  /* fchownat */
	{ 226, 0, 0, 0, EOPNOTSUPP },	  /* setxattr */
	{ 228, -1, 0, 0, EOPNOTSUPP },	  /* fsetxattr */
	{ 235, 0, 0, 0, EOPNOTSUPP },	  /* removexattr */
	{ 463, -1, 0, 0, EOPNOTSUPP },	  /* setxattrat */
	{ 466, -1, 0, 0, EOPNOTSUPP },	  /* removexattrat */
	{ 469, -1, 0, 0, EOPNOTSUPP },	  /* file_setattr */
	{ 54, -1, 0x40046602, 0, EPERM }, /* ioctl: FS_IOC32_SETFLAGS */
	{ 54, -1, 0x80046601, 0, 0 },	  /* FS_IOC32_GETFLAGS */
	{ 117, 21, 0, 0, EPERM },	  /* ipc: shmat */
	{ 393, 0, 1, 0, EPERM },	  /* semget */
	{ 395, 0, 1, 0, EPERM },	  /* shmget */
	{ 397, -1, 0, 0, EPERM },	  /* shmat */
	{ 399, 0, 0, 0, EPERM },	  /* msgget */
	{ 420, -1, 0, 0, EPERM },	  /* semtimedop_time64 */
	{ 277, 0, 0, 0, EPERM },	  /* mq_open */
	{ 340, 1, 7, 0, EPERM },	  /* prlimit64 */
	{ 340, 0, 7, 0, 0 },
};

static int
calls(const struct call_i386 *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		long got =
		    call_i386(list[i].call, list[i].a, list[i].b, list[i].c);
		int error = list[i].error;

		if (error != 0 ? got != -(MARK + error) : got < -MARK) {
			dprintf(2, "i386 call %d: %ld\n", list[i].call, got);
			return 1;
		}
	}
	return getpid_i386();
}

static int
policy_i386(void)
{
	return calls(calls_i386, nitems(calls_i386));
}

static int
policy_without_a_view(void)
{
	return calls(calls_i386, nitems(calls_i386)) +
	       calls(no_view_i386, nitems(no_view_i386));
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
	const struct command_filter_options no_view = { .allow_32bit = true,
		.no_view = true };

	if (run_under(NULL, 0, getpid_i386) != 0) {
		print_message("this kernel has no i386 calls\n");
		skip();
	}
	assert_killed(run(&strict, getpid_i386));
	assert_int_equal(run(&o, policy_i386), 0);
	assert_int_equal(run(&no_view, policy_without_a_view), 0);
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
