/* SPDX-License-Identifier: ISC */
/*
 * drop: at no moment of the change may a process of the new user look into a
 * process that becomes his. The linker gives this file the calls of
 * setresuid(2): after each, it does what the kernel does where
 * fs.suid_dumpable is 1, and then a process of that user attacks. Only root
 * can change its user.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "drop.h"

#define USER 65534

/* What the attacker is asked, a pid, and answers, an errno. */
static int question[2], answer[2];
static int within = -1; /* the answer between the change and its end */

int __real_setresuid(uid_t r, uid_t e, uid_t s);
int __wrap_setresuid(uid_t r, uid_t e, uid_t s);

/* What a process of the user gets that looks into this one. */
static int
attack(void)
{
	pid_t pid = getpid();
	int err = -1;

	if (write(question[1], &pid, sizeof(pid)) != sizeof(pid) ||
	    read(answer[0], &err, sizeof(err)) != sizeof(err))
		_exit(99);
	return err;
}

int
__wrap_setresuid(uid_t r, uid_t e, uid_t s)
{
	int result = __real_setresuid(r, e, s);

	if (result == 0) {
		prctl(PR_SET_DUMPABLE, 1);
		within = attack();
	}
	return result;
}

static void
become_user(void)
{
	if (setgroups(0, NULL) < 0 || setresgid(USER, USER, USER) < 0 ||
	    __real_setresuid(USER, USER, USER) < 0)
		_exit(98);
}

static void
serve_attacks(void)
{
	char path[64];
	pid_t pid;

	become_user();
	while (read(question[0], &pid, sizeof(pid)) == sizeof(pid)) {
		int fd, err;

		snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		err = fd < 0 ? errno : 0;
		if (fd >= 0)
			close(fd);
		if (write(answer[1], &err, sizeof(err)) != sizeof(err))
			break;
	}
	_exit(0);
}

/* Runs it beside an attacker. Its exit code. */
static int
run(int (*victim)(void))
{
	pid_t attacker, pid;
	int status;

	assert_int_equal(pipe2(question, O_CLOEXEC), 0);
	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	attacker = fork();
	if (attacker == 0)
		serve_attacks();
	pid = fork();
	if (pid == 0)
		_exit(victim());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	kill(attacker, SIGKILL);
	waitpid(attacker, NULL, 0);
	for (int i = 0; i < 2; i++) {
		close(question[i]);
		close(answer[i]);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Without a drop, and so that the attack is one. */
static int
victim_that_is_visible(void)
{
	become_user();
	prctl(PR_SET_DUMPABLE, 1);
	return attack();
}

static int
victim_that_is_hidden(void)
{
	prctl(PR_SET_DUMPABLE, 0);
	drop_to_user(USER, USER, NULL, 0, false);
	if (within != EACCES)
		return 1;
	if (attack() != EACCES)
		return 2;
	return prctl(PR_GET_DUMPABLE) == 0 && prctl(PR_GET_KEEPCAPS) == 0 ? 0
									  : 3;
}

/* What execve(2) of a program that he may read does. */
static int
victim_that_has_executed(void)
{
	int between;

	prctl(PR_SET_DUMPABLE, 0);
	drop_to_user(USER, USER, NULL, 0, true);
	prctl(PR_SET_DUMPABLE, 1);
	between = attack();
	prctl(PR_SET_DUMPABLE, 0);
	drop_capabilities();
	if (within != EACCES || between != EACCES)
		return 1;
	return attack() == EACCES ? 0 : 2;
}

static void
test_nobody_looks_into_a_hidden_process(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(run(victim_that_is_visible), 0);
	assert_int_equal(run(victim_that_is_hidden), 0);
	assert_int_equal(run(victim_that_has_executed), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_looks_into_a_hidden_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
