/* SPDX-License-Identifier: ISC */
/*
 * command_landlock: what a real kernel then refuses and what not, for each
 * policy and each ABI that the kernel has. As root and as anyone.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "command_filter.h"
#include "landlock_probes.h"
#include "util.h"

static int kernel_abi, fake_abi;
static bool fakes;

/* The kernel's answer, or a fake one (--wrap of the linker). */
int __real_landlock_abi(void);
int __wrap_landlock_abi(void);
int
__wrap_landlock_abi(void)
{
	return fakes ? fake_abi : __real_landlock_abi();
}

static void
touch(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0 && write(fd, "text", 4) == 4);
	close(fd);
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

static void
make_tree(char *dir)
{
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(mkdir("a", 0755), 0);
	assert_int_equal(mkdir("b", 0755), 0);
	assert_int_equal(mkdir("out", 0755), 0);
	assert_int_equal(mkdir("out/dir", 0755), 0);
	touch("a/moved");
	touch("a/moved-out");
	touch("b/file");
	touch("out/file");
	touch("out/removed");
	touch("out/moved");
	touch("out/moved-in");
}

static void
remove_tree(const char *dir)
{
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static int
make(struct command_landlock_options o)
{
	const struct command_landlock_place paths[] = {
		{ open("a", O_PATH | O_CLOEXEC), true },
		{ open("b", O_PATH | O_CLOEXEC), true },
		{ open("b/file", O_PATH | O_CLOEXEC), false },
		{ open("/dev/null", O_PATH | O_CLOEXEC), false },
	};
	int ruleset;

	o.writable = paths;
	o.writable_count = nitems(paths);
	ruleset = command_landlock_make(&o);
	for (size_t i = 0; i < nitems(paths); i++)
		close(paths[i].fd);
	return ruleset;
}

static void
child(int ruleset, int out)
{
	int got[nitems(probes)];

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    (ruleset >= 0 && command_landlock_load(ruleset) != 0))
		_exit(1);
	for (size_t i = 0; i < nitems(probes); i++)
		got[i] = probes[i].act();
	_exit(write(out, got, sizeof(got)) != sizeof(got));
}

/* Every probe under a ruleset, or none. */
static void
run(int ruleset, int got[nitems(probes)])
{
	int pair[2], status;
	pid_t pid;

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child(ruleset, pair[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(pair[0], got, nitems(probes) * sizeof(*got)),
	    nitems(probes) * sizeof(*got));
	close(pair[0]);
	close(pair[1]);
}

static int
expected(
    const struct probe *p, const struct command_landlock_options *o, int abi)
{
	bool part = (p->part == FILES && o->restrict_files) ||
		    (p->part == TCP && !o->network) || p->part == SCOPES;
	bool known = abi >= p->since && (p->until == 0 || abi <= p->until);

	return part && known ? p->error : 0;
}

static void
check(struct command_landlock_options o, int abi)
{
	char dir[] = "/var/tmp/command_landlock.XXXXXX";
	int got[nitems(probes)], wrong = 0, ruleset;

	make_tree(dir);
	ruleset = make(o);
	assert_true(ruleset >= 0);
	assert_int_equal(fcntl(ruleset, F_GETFD), FD_CLOEXEC);
	run(ruleset, got);
	for (size_t i = 0; i < nitems(probes); i++)
		if (got[i] != expected(&probes[i], &o, abi)) {
			print_error("ABI %d network %d files %d, %s: %s\n", abi,
			    o.network, o.restrict_files, probes[i].name,
			    strerror(got[i]));
			wrong++;
		}
	close(ruleset);
	remove_tree(dir);
	assert_int_equal(wrong, 0);
}

static void
need_landlock(void)
{
	if (kernel_abi == 0) {
		print_message("this kernel has no Landlock\n");
		skip();
	}
}

/* That the probes do work, by themselves. */
static void
test_no_ruleset(void **state)
{
	char dir[] = "/var/tmp/command_landlock.XXXXXX";
	int got[nitems(probes)];

	make_tree(dir);
	run(-1, got);
	remove_tree(dir);
	for (size_t i = 0; i < nitems(probes); i++)
		assert_int_equal(got[i], 0);
}

static void
check_policies(int abi)
{
	for (unsigned i = 0; i < 4; i++) {
		const struct command_landlock_options o = {
			.network = i & 1, .restrict_files = i & 2, .abi = abi
		};
		bool nothing =
		    abi < 6 && !o.restrict_files && (abi < 4 || o.network);

		/* Who asks first makes no ruleset, and needs none. */
		assert_int_equal(command_landlock_is_empty(&o), nothing);
		if (nothing)
			assert_int_equal(command_landlock_make(&o), -ENOMSG);
		else
			check(o, abi);
	}
}

static void
test_policies(void **state)
{
	need_landlock();
	assert_int_equal(command_landlock_abi(), kernel_abi);
	check_policies(kernel_abi);
}

/* Up to the kernel's; a later one knows what we know. */
static void
test_abis(void **state)
{
	const struct command_landlock_options o = { .restrict_files = true };

	fakes = true;
	fake_abi = 0;
	assert_int_equal(command_landlock_abi(), 0);
	assert_int_equal(command_landlock_make(&o), -ENOSYS);
	/* None, and switched off; but not what nobody understands. */
	fake_abi = -ENOSYS;
	assert_int_equal(command_landlock_abi(), 0);
	fake_abi = -EOPNOTSUPP;
	assert_int_equal(command_landlock_abi(), 0);
	fake_abi = -EPERM;
	assert_int_equal(command_landlock_abi(), -EPERM);
	assert_int_equal(command_landlock_make(&o), -EPERM);
	for (fake_abi = 1; fake_abi <= kernel_abi; fake_abi++)
		check_policies(fake_abi);
	fake_abi = 99;
	if (kernel_abi >= 6)
		check_policies(fake_abi);
	fakes = false;
	assert_int_equal(command_landlock_abi(), kernel_abi);
	need_landlock();
}

/* An ordinary user first fails for want of no_new_privs. */
static int
load_badly(int ruleset)
{
	if (getuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		return 1;
	if (command_landlock_load(ruleset) != -EPERM)
		return 2;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return 3;
	if (command_landlock_load(-1) != -EBADF)
		return 4;
	return command_landlock_load(open("/dev/null", O_RDONLY)) == -EBADFD
		   ? 0
		   : 5;
}

static void
test_errors(void **state)
{
	const struct command_landlock_place bad = { -1, true };
	const struct command_landlock_options strict = { 0 }, no_file = {
		.restrict_files = true, .writable = &bad, .writable_count = 1
	};
	int status, ruleset;
	pid_t pid;

	need_landlock();
	assert_int_equal(command_landlock_make(&no_file), -EBADF);
	ruleset = command_landlock_make(&strict);
	pid = fork();
	if (pid == 0)
		_exit(load_badly(ruleset));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(ruleset);
}

/* Two listeners, which nobody ever answers. */
static int
group_setup(void **state)
{
	int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int un = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(tcp_address);

	kernel_abi = command_landlock_abi();
	tcp_address.sin_family = AF_INET;
	tcp_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	abstract_address.sun_family = AF_UNIX;
	snprintf(abstract_address.sun_path + 1,
	    sizeof(abstract_address.sun_path) - 1, "landlock.%d", getpid());
	return bind(tcp, (void *)&tcp_address, len) < 0 ||
	       listen(tcp, 4096) < 0 ||
	       getsockname(tcp, (void *)&tcp_address, &len) < 0 ||
	       bind(un, (void *)&abstract_address, sizeof(abstract_address)) <
		   0 ||
	       listen(un, 4096) < 0;
}

/* --- a place without sockets -------------------------------------------- */

static int
bound(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err;

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	err = bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? errno : 0;
	close(fd);
	return err;
}

/* In a child: `a` takes sockets, `b` everything else. Returns the line of what
 * was not as expected. */
static int
try_sockets(void)
{
	const struct {
		int line, got, want;
	} tries[] = {
		{ __LINE__, bound("a/s"), 0 },
		{ __LINE__, bound("b/s"), EACCES },
		{ __LINE__, mkdir("b/d", 0755) < 0 ? errno : 0, 0 },
		{ __LINE__, bound("b/d/s"), EACCES },
		{ __LINE__, rename("b/old", "b/new") < 0 ? errno : 0, EACCES },
		{ __LINE__, link("b/old", "b/new") < 0 ? errno : 0, EACCES },
		{ __LINE__, symlink("x", "b/l") < 0 ? errno : 0, 0 },
		{ __LINE__, mkfifo("b/f", 0644) < 0 ? errno : 0, 0 },
		{ __LINE__, rename("b/f", "b/g") < 0 ? errno : 0, 0 },
		{ __LINE__, unlink("b/old") < 0 ? errno : 0, 0 },
	};

	for (size_t i = 0; i < nitems(tries); i++)
		if (tries[i].got != tries[i].want) {
			dprintf(2, "line %d: %s\n", tries[i].line,
			    strerror(tries[i].got));
			return 1;
		}
	return 0;
}

/* Between places the kernel answers EXDEV or EACCES, by its ABI. */
static int
try_moves(void)
{
	return rename("a/s", "b/s") == 0 || link("a/s", "b/s") == 0 ||
	       rename("b/old2", "b/d/new") == 0 || rename("a/t", "a/u") != 0;
}

static void
test_a_place_without_sockets(void **state)
{
	char dir[] = "/tmp/execd-landlock-XXXXXX";
	struct command_landlock_place paths[2];
	struct command_landlock_options o = { .network = true,
		.restrict_files = true,
		.writable = paths,
		.writable_count = nitems(paths),
		.abi = kernel_abi };
	int ruleset, status;
	pid_t pid;

	if (kernel_abi < 1)
		skip();
	make_tree(dir);
	assert_int_equal(bound("b/old") | bound("b/old2") | bound("a/t"), 0);
	paths[0] = (struct command_landlock_place){
		.fd = open("a", O_PATH | O_CLOEXEC), .directory = true
	};
	paths[1] = (struct command_landlock_place){ .fd = open("b",
							O_PATH | O_CLOEXEC),
		.directory = true,
		.no_sockets = true };
	ruleset = command_landlock_make(&o);
	assert_true(ruleset >= 0);
	pid = fork();
	if (pid == 0)
		_exit(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		      command_landlock_load(ruleset) != 0 || try_sockets() ||
		      try_moves());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(ruleset);
	close(paths[0].fd);
	close(paths[1].fd);
	remove_tree(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_ruleset),
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_abis),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_a_place_without_sockets),
	};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
