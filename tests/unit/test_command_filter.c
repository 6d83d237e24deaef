/* SPDX-License-Identifier: ISC */
/*
 * command_filter: every row of doc/sandbox.md C4 by a real call that would do
 * no harm, and what must go on working.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "command_filter.h"
#include "command_filter_child.h"
#include "util.h"

static const struct command_filter_options strict;
static const struct command_filter_options open_network = { .network = true };

/* Refused whatever the arguments; these mean nothing to any of them. */
static const int plain[] = { SYS_ptrace, SYS_process_vm_readv,
	SYS_process_vm_writev, SYS_kcmp, SYS_pidfd_getfd, SYS_process_madvise,
	SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_move_mount,
	SYS_open_tree, NR_open_tree_attr, SYS_fsopen, SYS_fsconfig, SYS_fsmount,
	SYS_fspick, SYS_mount_setattr, NR_statmount, NR_listmount,
	SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_setns, SYS_unshare,
	SYS_bpf, SYS_userfaultfd, SYS_perf_event_open, SYS_keyctl, SYS_add_key,
	SYS_request_key, SYS_io_uring_setup, SYS_io_uring_enter,
	SYS_io_uring_register, SYS_syslog, SYS_lookup_dcookie,
	SYS_fanotify_init, SYS_init_module, SYS_finit_module, SYS_delete_module,
	SYS_kexec_load, SYS_kexec_file_load, SYS_reboot, SYS_swapon,
	SYS_swapoff, SYS_acct, SYS_quotactl, SYS_quotactl_fd, SYS_clock_settime,
	SYS_settimeofday, SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname,
	SYS_setdomainname, SYS_vhangup, SYS_move_pages, SYS_migrate_pages,
	SYS_mbind, SYS_set_mempolicy, SYS_vmsplice, SYS_remap_file_pages,
#ifdef __x86_64__
	SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS_ustat, SYS_sysfs,
#endif
	SYS_nfsservctl };

static int
plain_rows(void)
{
	for (size_t i = 0; i < nitems(plain); i++)
		if (syscall(plain[i], -1, -1, -1, -1, -1, -1) != -1 ||
		    errno != MARK + EPERM) {
			dprintf(2, "call %d: errno %d\n", plain[i], errno);
			return 1;
		}
	return 0;
}

static void
test_plain_rows(void **state)
{
	assert_int_equal(run(&strict, plain_rows), 0);
	assert_int_equal(run(&open_network, plain_rows), 0);
}

static const int namespaces[] = { CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID,
	CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP,
	CLONE_NEWTIME };

/* A thread that shares nothing: no kernel makes that. */
static long
make(long flags)
{
	return syscall(SYS_clone, CLONE_THREAD | flags, 0, 0, 0, 0);
}

static int
no_namespaces(void)
{
	long others = 0xffffff00 & ~CLONE_SIGHAND;

	for (size_t i = 0; i < nitems(namespaces); i++) {
		others &= ~namespaces[i];
		REFUSED(EPERM, make(namespaces[i]));
		REFUSED(EPERM, make(HIGH | SIGCHLD | namespaces[i]));
	}
	REFUSED(EPERM, make(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID));
	REFUSED(ENOSYS, syscall(SYS_clone3, NULL, 0));
	PASSED(make(SIGCHLD));
	PASSED(make(others | HIGH));
	return 0;
}

static int
all_namespaces(void)
{
	for (size_t i = 0; i < nitems(namespaces); i++)
		PASSED(make(namespaces[i]));
	PASSED(syscall(SYS_clone3, NULL, 0));
	PASSED(syscall(SYS_unshare, -1));
	PASSED(syscall(SYS_setns, -1, -1));
	REFUSED(EPERM, syscall(SYS_mount, -1, -1, -1, -1, -1));
	return 0;
}

static void
test_namespaces(void **state)
{
	const struct command_filter_options o = { .allow_nested_userns = true };

	assert_int_equal(run(&strict, no_namespaces), 0);
	assert_int_equal(run(&o, all_namespaces), 0);
}

static int
node_types(void)
{
	for (long mode = 0777; mode <= 0177777; mode += S_IFIFO) {
		long type = mode & S_IFMT;

		bool refused = type != 0 && type != S_IFIFO && type != S_IFREG;

		EITHER(refused, syscall(SYS_mknodat, -1, "", mode, 0));
		EITHER(refused, syscall(SYS_mknodat, -1, "", mode | HIGH, 0));
#ifdef SYS_mknod
		EITHER(refused, syscall(SYS_mknod, "", mode, 0));
		EITHER(refused, syscall(SYS_mknod, "", mode | HIGH, 0));
#endif
	}
	return 0;
}

static int
terminals(void)
{
	REFUSED(EPERM, syscall(SYS_ioctl, -1, TIOCSTI, 0));
	REFUSED(EPERM, syscall(SYS_ioctl, -1, TIOCSTI | HIGH, 0));
	REFUSED(EPERM, syscall(SYS_ioctl, -1, TIOCLINUX, 0));
	REFUSED(EPERM, syscall(SYS_ioctl, -1, TIOCCONS, 0));
	REFUSED(EPERM, syscall(SYS_ioctl, -1, TIOCSETD, 0));
	REFUSED(EPERM, syscall(SYS_ioctl, -1, TIOCSCTTY, 1));
	REFUSED(EPERM, syscall(SYS_ioctl, -1, TIOCSCTTY, 1 | HIGH));
	PASSED(syscall(SYS_ioctl, -1, TIOCSCTTY, 0));
	PASSED(syscall(SYS_ioctl, -1, TIOCGWINSZ, 0));
	PASSED(syscall(SYS_ioctl, -1, TIOCNOTTY, 1));
	return 0;
}

static int
process_attributes(void)
{
	for (int bit = 0; bit < 32; bit++) {
		if (1l << bit != ADDR_NO_RANDOMIZE)
			REFUSED(EPERM, syscall(SYS_personality, 1l << bit));
		REFUSED(EPERM, syscall(SYS_personality, ~(1l << bit)));
	}
	WORKS(syscall(SYS_personality, ADDR_NO_RANDOMIZE) == 0);
	WORKS(syscall(SYS_personality, ADDR_NO_RANDOMIZE | HIGH) ==
	      ADDR_NO_RANDOMIZE);
	WORKS(syscall(SYS_personality, 0) == ADDR_NO_RANDOMIZE);
	WORKS(syscall(SYS_personality, 0xffffffffl) == 0);
	WORKS(syscall(SYS_personality, -1l) == 0);
	WORKS(syscall(SYS_personality, 0) == 0);
	WORKS(syscall(SYS_personality, HIGH) == 0);
	REFUSED(EPERM, syscall(SYS_prctl, PR_SET_MM, -1, -1, -1, -1));
	REFUSED(EPERM, syscall(SYS_prctl, PR_SET_MM | HIGH, -1, -1, -1, -1));
	REFUSED(EPERM, syscall(SYS_prctl, PR_SET_PTRACER, 0, 0, 0, 0));
	WORKS(prctl(PR_SET_NAME, "name", 0, 0, 0) == 0);
	return 0;
}

/* No file has this name. */
static int
changes(bool refused, long mode)
{
#ifdef SYS_chmod
	EITHER(refused, syscall(SYS_chmod, "", mode));
#endif
	EITHER(refused, syscall(SYS_fchmod, -1, mode));
	EITHER(refused, syscall(SYS_fchmodat, -1, "", mode));
	EITHER(refused, syscall(NR_fchmodat2, -1, "", mode, 0));
	return 0;
}

static int
creations(bool refused, long mode)
{
	/* Newer processors, like arm64, have only the calls that take a
	 * directory. */
#ifdef SYS_open
	EITHER(refused, syscall(SYS_creat, "", mode));
	EITHER(refused, syscall(SYS_mknod, "", S_IFREG | mode, 0));
	EITHER(refused, syscall(SYS_open, "", O_CREAT, mode));
	EITHER(refused, syscall(SYS_open, "", O_TMPFILE | O_RDWR, mode));
	PASSED(syscall(SYS_open, "", O_RDWR | O_DIRECTORY, mode));
#endif
	EITHER(refused, syscall(SYS_mknodat, -1, "", S_IFIFO | mode, 0));
	EITHER(refused,
	    syscall(SYS_openat, -1, "", O_CREAT | O_WRONLY | HIGH, mode));
	EITHER(refused, syscall(SYS_openat, -1, "", O_TMPFILE | O_RDWR, mode));
	PASSED(syscall(SYS_openat, -1, "", O_RDWR | O_TRUNC, mode));
	PASSED(syscall(SYS_mkdirat, -1, "", mode));
	return 0;
}

static int
no_setid(void)
{
	static const int bits[] = { S_ISUID, S_ISGID, S_ISUID | S_ISGID };

	for (size_t i = 0; i < nitems(bits); i++) {
		WORKS(changes(true, 0755 | bits[i]) == 0 &&
		      creations(true, 0755 | bits[i]) == 0);
		WORKS(changes(true, bits[i] | HIGH) == 0 &&
		      creations(true, bits[i] | HIGH) == 0);
	}
	WORKS(changes(false, 01777) == 0 && changes(false, 0777 | HIGH) == 0);
	WORKS(
	    creations(false, 01777) == 0 && creations(false, 0777 | HIGH) == 0);
	REFUSED(ENOSYS, syscall(SYS_openat2, -1, "", NULL, 0));
	return 0;
}

/* Another filter hands these calls to the proxy, and nothing else. */
static int
asked_setgid(void)
{
	WORKS(changes(false, 02755) == 0 && creations(true, 02755) == 0);
	WORKS(changes(true, 06755) == 0 && creations(true, 06755) == 0);
	WORKS(changes(true, 04755) == 0 && creations(true, 04755) == 0);
	REFUSED(ENOSYS, syscall(SYS_openat2, -1, "", NULL, 0));
	return 0;
}

static int
any_setid(void)
{
	WORKS(changes(false, 06755) == 0 && creations(false, 06755) == 0);
	PASSED(syscall(SYS_openat2, -1, "", NULL, 0));
	REFUSED(EPERM, syscall(SYS_mknodat, -1, "", S_IFCHR | 06600, 0));
	return 0;
}

static void
test_arguments(void **state)
{
	const struct command_filter_options o = { .allow_setid = true };
	const struct command_filter_options ask = { .ask_setgid = true };

	assert_int_equal(run(&strict, node_types), 0);
	assert_int_equal(run(&strict, terminals), 0);
	assert_int_equal(run(&strict, process_attributes), 0);
	assert_int_equal(run(&strict, no_setid), 0);
	assert_int_equal(run(&ask, asked_setgid), 0);
	assert_int_equal(run(&o, any_setid), 0);
}

static void *
nothing(void *arg)
{
	return arg;
}

static int
ordinary_work(void)
{
	char dir[] = "/var/tmp/command_filter.XXXXXX", *argv[] = { dir, NULL };
	int pair[2], fd, status;
	pthread_t thread;
	pid_t pid = fork();

	if (pid == 0)
		_exit(7);
	WORKS(waitpid(pid, &status, 0) == pid && status == 7 << 8);
	WORKS(pthread_create(&thread, NULL, nothing, argv) == 0);
	WORKS(pthread_join(thread, NULL) == 0);
	WORKS(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, NULL) == 0);
	WORKS(waitpid(pid, &status, 0) == pid && status == 0);
	WORKS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	WORKS(mkdtemp(dir) != NULL && chdir(dir) == 0);
	WORKS(mkfifo("fifo", 0600) == 0 && unlink("fifo") == 0);
	WORKS((fd = open("file", O_CREAT | O_WRONLY, 0644)) >= 0);
	WORKS(chmod("file", 0755) == 0 && fchmod(fd, 01644) == 0);
	WORKS(unlink("file") == 0 && rmdir(dir) == 0);
	WORKS(personality(0xffffffff) == 0);
	WORKS((fd = open("/dev/ptmx", O_RDWR | O_NOCTTY)) >= 0);
	WORKS(ioctl(fd, TIOCGWINSZ, &(struct winsize){ 0 }) == 0);
	return 0;
}

/* With the errors that the C library knows. */
static void
test_ordinary_work(void **state)
{
	struct command_filter f[2];

	compile(&f[0], &strict);
	compile(&f[1], &open_network);
	assert_int_equal(run_under(f, 1, ordinary_work), 0);
	assert_int_equal(run_under(f, 2, ordinary_work), 0);
	command_filter_clear(&f[0]);
	command_filter_clear(&f[1]);
}

static int
both(void)
{
	REFUSED(EPERM, syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
	REFUSED(EPERM, syscall(SYS_fchmodat, -1, "", 04755));
	REFUSED(EPERM, syscall(SYS_ptrace, -1, -1, -1, -1));
	return 0;
}

static void
test_stacks(void **state)
{
	const struct command_filter_options lax = { .network = true,
		.allow_setid = true };
	struct command_filter f[3];

	compile(&f[0], &lax);
	compile(&f[1], &strict);
	compile(&f[2], &lax);
	for (size_t i = 0; i < nitems(f); i++)
		mark(&f[i]);
	assert_int_equal(run_under(f, 2, both), 0);
	assert_int_equal(run_under(f + 1, 2, both), 0);
	for (size_t i = 0; i < nitems(f); i++)
		command_filter_clear(&f[i]);
}

/* Its own children, with the filter in force for what they are made to call. */
static int
trace_child(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		WORKS(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
		raise(SIGSTOP);
		REFUSED(EPERM, syscall(SYS_getppid)); /* it became unshare */
		_exit(0);
	}
	WORKS(prctl(PR_SET_PTRACER, pid, 0, 0, 0) == 0 || errno == EINVAL);
	WORKS(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
#ifdef __x86_64__
	struct user_regs_struct regs;

	do {
		WORKS(ptrace(PTRACE_SYSCALL, pid, 0, 0) == 0);
		WORKS(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
		WORKS(ptrace(PTRACE_GETREGS, pid, 0, &regs) == 0);
	} while (regs.orig_rax != SYS_getppid);
	regs.orig_rax = SYS_unshare;
	regs.rdi = CLONE_NEWNS;
	WORKS(ptrace(PTRACE_SETREGS, pid, 0, &regs) == 0);
	WORKS(ptrace(PTRACE_CONT, pid, 0, 0) == 0);
	WORKS(waitpid(pid, &status, 0) == pid && status == 0);
#else
	WORKS(ptrace(PTRACE_KILL, pid, 0, 0) == 0);
	WORKS(waitpid(pid, &status, 0) == pid);
#endif
	return 0;
}

static int
trace_refused(void)
{
	REFUSED(EPERM, syscall(SYS_ptrace, -1, -1, -1, -1));
	REFUSED(EPERM, syscall(SYS_process_vm_readv, -1, -1, -1, -1, -1, -1));
	REFUSED(EPERM, syscall(SYS_prctl, PR_SET_PTRACER, 0, 0, 0, 0));
	return 0;
}

static void
test_tracing(void **state)
{
	const struct command_filter_options own = { .allow_ptrace = true },
					    shared = { .allow_ptrace = true,
						    .no_view = true };

	assert_int_equal(run(&own, trace_child), 0);
	assert_int_equal(run(&shared, trace_refused), 0);
	assert_int_equal(run(&strict, trace_refused), 0);
}

static void
test_compile(void **state)
{
	for (unsigned i = 0; i < 256; i++) {
		const struct command_filter_options o = { .network = i & 1,
			.allow_ptrace = i & 2,
			.unix_allow = i & 4,
			.allow_32bit = i & 8,
			.allow_setid = i & 16,
			.allow_nested_userns = i & 32,
			.log = i & 64,
			.no_view = i & 128 };
		struct command_filter a, b;

		compile(&a, &o);
		compile(&b, &o);
		assert_int_equal(a.len, b.len);
		assert_memory_equal(a.code, b.code, a.len * sizeof(*a.code));
		assert_int_equal(a.flags, o.log ? SECCOMP_FILTER_FLAG_LOG : 0);
		if (i < 16)
			print_message(
			    "network %d ptrace %d allow %d 32 %d: %u\n",
			    o.network, o.allow_ptrace, o.unix_allow,
			    o.allow_32bit, a.len);
		command_filter_clear(&a);
		command_filter_clear(&b);
		assert_null(a.code);
	}
}

/* Also that the kernel takes the flag for logging. */
static void
test_load(void **state)
{
	const struct command_filter_options o = { .log = true };
	struct command_filter f;
	int status;
	pid_t pid;

	assert_int_equal(run(&o, plain_rows), 0);
	compile(&f, &strict);
	pid = fork();
	if (pid == 0)
		_exit((getuid() == 0 && setresuid(65534, 65534, 65534) < 0) ||
		      command_filter_load(&f) != -EACCES);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	command_filter_clear(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_rows),
		cmocka_unit_test(test_namespaces),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_ordinary_work),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_tracing),
		cmocka_unit_test(test_compile),
		cmocka_unit_test(test_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
