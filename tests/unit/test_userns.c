/* SPDX-License-Identifier: ISC */
/*
 * userns: a process that its user's other processes can look into, because it
 * writes the maps of a new user namespace, has nothing open. The linker gives
 * this file the calls of prctl(2).
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "userns.h"

#define TAKEN 99
#define HIGH  600

int __real_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
    unsigned long d);
int __wrap_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
    unsigned long d);

int
__wrap_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
    unsigned long d)
{
	if (option == PR_SET_DUMPABLE && a == 1)
		for (int fd = 0; fd <= HIGH; fd++)
			if (fcntl(fd, F_GETFD) >= 0)
				_exit(TAKEN);
	return __real_prctl(option, a, b, c, d);
}

/* Exit code of a child that enters a namespace. */
static int
enter(void)
{
	const char *step;
	bool none;
	int err, status;
	pid_t pid = fork();

	if (pid == 0) {
		__real_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		if (dup2(STDERR_FILENO, HIGH) != HIGH)
			_exit(1);
		err = userns_enter_new(&none, &step);
		if (err == -TAKEN || __real_prctl(PR_GET_DUMPABLE, 0, 0, 0, 0))
			_exit(TAKEN);
		if (none)
			_exit(77);
		/* Inside it has every capability. */
		_exit(err == 0 && setgid(getegid()) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
test_who_can_be_looked_into_has_nothing_open(void **state)
{
	int code = enter();

	if (code == 77)
		skip();
	assert_int_equal(code, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_can_be_looked_into_has_nothing_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
