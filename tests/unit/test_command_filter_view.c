/* SPDX-License-Identifier: ISC */
/*
 * command_filter: what is refused on top where there is no view, by real calls
 * that would do no harm, and what must go on working.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "command_filter.h"
#include "command_filter_child.h"
#include "util.h"

/* Not in Debian 12's headers. */
#define NR_setxattrat	 463
#define NR_removexattrat 466
#define NR_file_setattr	 469

#define BTRFS(number, type) _IOW(0x94, number, type)

static const struct command_filter_options none = { .no_view = true };
static const struct command_filter_options none_and_network = { .no_view = true,
	.network = true,
	.allow_setid = true,
	.allow_32bit = true };
static const struct command_filter_options files = { .no_view = true,
	.no_chmod = true };
static const struct command_filter_options view;

/* These mean nothing to any of them. */
static const int unsupported[] = { SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr,
	SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, NR_setxattrat,
	NR_removexattrat, NR_file_setattr };

static const int refused[] = {
#ifdef __x86_64__
	SYS_chown, SYS_lchown,
#endif
	SYS_fchown, SYS_fchownat, SYS_shmget, SYS_shmat, SYS_shmctl, SYS_semget,
	SYS_semop, SYS_semtimedop, SYS_semctl, SYS_msgget, SYS_msgsnd,
	SYS_msgrcv, SYS_msgctl, SYS_mq_open, SYS_mq_unlink
};

/* Whatever the size of what they take, and whichever way it goes. */
static const unsigned long ioctls[] = { FS_IOC_SETFLAGS, _IOW('f', 2, int),
	FS_IOC_FSSETXATTR, _IOW('f', 133, char[128]), _IOR('f', 19, char[12]),
	BTRFS(1, char[4096]), BTRFS(14, char[4096]), BTRFS(15, char[4096]),
	BTRFS(23, char[4096]), BTRFS(24, char[4096]), BTRFS(26, uint64_t),
	BTRFS(37, char[200]), BTRFS(63, char[4096]), _IOW('r', 17, uint32_t),
	_IOW('o', 4, char[24]) };

static const unsigned long harmless[] = { FS_IOC_GETFLAGS, FS_IOC_FSGETXATTR,
	FICLONE, FICLONERANGE, FIDEDUPERANGE, FIONREAD, TIOCGWINSZ, TCGETS };

static int
calls_refused(void)
{
	for (size_t i = 0; i < nitems(unsupported); i++)
		REFUSED(EOPNOTSUPP,
		    syscall(unsupported[i], -1, -1, -1, -1, -1, -1));
	for (size_t i = 0; i < nitems(refused); i++)
		REFUSED(EPERM, syscall(refused[i], -1, -1, -1, -1, -1, -1));
	for (size_t i = 0; i < nitems(ioctls); i++) {
		REFUSED(EPERM, syscall(SYS_ioctl, -1, ioctls[i], 0));
		REFUSED(EPERM, syscall(SYS_ioctl, -1, ioctls[i] | HIGH, 0));
	}
	return 0;
}

static int
limits_of_others(void)
{
	struct rlimit limit;

	for (int bit = 0; bit < 31; bit++)
		REFUSED(EPERM, syscall(SYS_prlimit64, 1 << bit, RLIMIT_NOFILE,
				   NULL, NULL));
	REFUSED(
	    EPERM, syscall(SYS_prlimit64, getpid(), RLIMIT_NOFILE, NULL, NULL));
	WORKS(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	WORKS(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	WORKS(syscall(SYS_prlimit64, HIGH, RLIMIT_NOFILE, NULL, NULL) == 0);
	return 0;
}

static int
modes_by_name(void)
{
#ifdef SYS_chmod
	REFUSED(EPERM, syscall(SYS_chmod, "", 0));
	REFUSED(EPERM, syscall(SYS_chmod, "", 04755));
#endif
	REFUSED(EPERM, syscall(SYS_fchmodat, -1, "", 0755));
	REFUSED(EPERM, syscall(NR_fchmodat2, -1, "", 0755, 0));
	REFUSED(EPERM, syscall(SYS_fchmod, -1, 04755));
	PASSED(syscall(SYS_fchmod, -1, 0755));
	return 0;
}

/* What builds do to their files, and what is read only. */
static int
work(void)
{
	char dir[] = "/var/tmp/command_filter.XXXXXX";
	struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
	int fd;

	for (size_t i = 0; i < nitems(harmless); i++)
		PASSED(syscall(SYS_ioctl, -1, harmless[i], 0));
	WORKS(mkdtemp(dir) != NULL && chdir(dir) == 0);
	WORKS((fd = open("file", O_CREAT | O_WRONLY, 0600)) >= 0);
	WORKS(fchmod(fd, 0755) == 0 && chmod("file", 0700) == 0);
	WORKS(futimens(fd, times) == 0);
	WORKS(utimensat(AT_FDCWD, "file", times, 0) == 0);
	WORKS(link("file", "second") == 0 && rename("second", "file") == 0);
	WORKS(unlink("file") == 0 && unlink("second") == 0);
	WORKS(rmdir(dir) == 0);
	PASSED(syscall(SYS_getxattr, "", "", NULL, 0));
	PASSED(syscall(SYS_mq_timedsend, -1, NULL, 0, 0, NULL));
	return 0;
}

static void
test_without_a_view(void **state)
{
	assert_int_equal(run(&none, calls_refused), 0);
	assert_int_equal(run(&none, limits_of_others), 0);
	assert_int_equal(run(&none, work), 0);
	assert_int_equal(run(&none_and_network, calls_refused), 0);
	assert_int_equal(run(&files, calls_refused), 0);
	assert_int_equal(run(&files, modes_by_name), 0);
}

static int
calls_pass(void)
{
	for (size_t i = 0; i < nitems(unsupported); i++)
		PASSED(syscall(unsupported[i], -1, -1, -1, -1, -1, -1));
	for (size_t i = 0; i < nitems(refused); i++)
		PASSED(syscall(refused[i], -1, -1, -1, -1, -1, -1));
	for (size_t i = 0; i < nitems(ioctls); i++)
		PASSED(syscall(SYS_ioctl, -1, ioctls[i], 0));
	PASSED(syscall(SYS_prlimit64, getpid(), RLIMIT_NOFILE, NULL, NULL));
	return 0;
}

/* The mounts of a view say the same, and more exactly. */
static void
test_with_a_view(void **state)
{
	assert_int_equal(run(&view, calls_pass), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_view),
		cmocka_unit_test(test_with_a_view),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
