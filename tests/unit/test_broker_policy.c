/* SPDX-License-Identifier: ISC */
/*
 * broker_policy: what only an attack calls kills the process, what a library
 * may try is refused, other processes are closed to it, and what the broker
 * needs goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker_main.h"
#include "config.h"
#include "filter_rows.h"
#include "landlock.h"
#include "util.h"

/* Wait status of a child that loads the filter, then acts. */
static int
run(long (*act)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (broker_policy_load() < 0)
			_exit(99);
		syscall(SYS_exit_group, (int)act());
		__builtin_unreachable();
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static char *no_strings[] = { NULL };

static long
execute(void)
{
	return syscall(SYS_execve, "/bin/true", no_strings, no_strings);
}

static long
execute_descriptor(void)
{
	return syscall(SYS_execveat, 0, "", no_strings, no_strings, 0x1000);
}

static long
trace(void)
{
	return syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
}

static long
read_memory(void)
{
	return syscall(SYS_process_vm_readv, getppid(), 0, 0, 0, 0, 0);
}

static long
take_descriptor(void)
{
	return syscall(SYS_pidfd_getfd, 0, 0, 0);
}

static long
new_namespace(void)
{
	return syscall(SYS_unshare, 0x10000000);
}

static long
become_root(void)
{
	return syscall(SYS_setuid, 0);
}

static long
load_bpf(void)
{
	return syscall(SYS_bpf, 0, 0, 0);
}

static void
test_attacks_kill(void **state)
{
	static long (*const attacks[])(void) = { execute, execute_descriptor,
		trace, read_memory, take_descriptor, new_namespace, become_root,
		load_bpf };

	for (size_t i = 0; i < nitems(attacks); i++) {
		int status = run(attacks[i]);

#if EXECD_SANDBOX_DEBUG
		assert_int_equal(WEXITSTATUS(status), 128 + SIGSYS);
#else
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
#endif
	}
}

static long
dial(void)
{
	return syscall(SYS_socket, AF_UNIX, SOCK_DGRAM, 0) == -1 &&
		       errno == EACCES &&
		       syscall(SYS_connect, 0, NULL, 0) == -1 && errno == EACCES
		   ? 0
		   : 1;
}

static long
listen_somewhere(void)
{
	return syscall(SYS_bind, 0, NULL, 0) == -1 && errno == EACCES &&
		       syscall(SYS_listen, 0, 1) == -1 && errno == EACCES
		   ? 0
		   : 1;
}

static long
work(void)
{
	int pair[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
	    write(pair[0], "x", 1) != 1 || memfd_create("x", 0) < 0)
		return 1;
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0)
		syscall(SYS_exit_group, 0);
	return child > 0 && waitpid(child, NULL, 0) == child ? 0 : 2;
}

static long
look_into_the_parent(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)getppid());
	return open(path, O_RDWR) == -1 && errno == EACCES ? 0 : 1;
}

static long
signal_the_parent(void)
{
	return kill(getppid(), 0) == -1 && errno == EPERM ? 0 : 1;
}

/* Of the same user; so a fresh broker is closed to one that was taken over. */
static void
test_other_processes_are_closed(void **state)
{
	int abi = landlock_abi();

	if (abi < 1)
		skip();
	assert_int_equal(run(look_into_the_parent), 0);
	if (abi >= 6)
		assert_int_equal(run(signal_the_parent), 0);
}

static long
do_nothing(void)
{
	return 0;
}

/* As in a container of systemd-nspawn(1). */
static void
test_landlock_is_refused(void **state)
{
	static const struct filter_rule no_landlock[] = { DENY(
	    landlock_create_ruleset) };
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(filter_load_denied(no_landlock, 1) < 0 ||
			      landlock_abi() != -EACCES || run(do_nothing) != 0
			  ? 1
			  : run(execute) == 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
test_libraries_are_refused(void **state)
{
	assert_int_equal(run(dial), 0);
	assert_int_equal(run(listen_somewhere), 0);
}

static void
test_work_goes_on(void **state)
{
	assert_int_equal(run(work), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attacks_kill),
		cmocka_unit_test(test_libraries_are_refused),
		cmocka_unit_test(test_landlock_is_refused),
		cmocka_unit_test(test_other_processes_are_closed),
		cmocka_unit_test(test_work_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
