/* SPDX-License-Identifier: ISC */
/* What CreateProcess gets as the environment. Wine adds SystemRoot to that of
 * every process itself, so no command can tell. */
#include <setjmp.h>
#include <stdarg.h>

#include "base.h"
#include "host_windows.h"
#include "start_windows.h"

#include <cmocka.h>

bool
start_failed(
    struct command_error *e, const char *code, const char *step, DWORD number)
{
	fail_msg("%s: %s (%lu)", code, step, number);
	return false;
}

bool
host_path_is_absolute(struct slice path)
{
	return path.len > 1 && path.ptr[1] == ':';
}

/* The variables with this name, one after the other, and what follows. */
static void
expect(char *variable, const WCHAR *only)
{
	char program[] = "cmd", a[] = "A=b";
	char *argv[] = { program, NULL }, *envp[] = { a, variable, NULL };
	struct command_request r = {
		.argv = argv, .envp = envp, .cwd = "C:\\"
	};
	struct command_error e;
	struct program p;
	size_t found = 0;

	assert_true(program_prepare(&r, &p, &e));
	for (WCHAR *v = p.environment; *v != 0; v += wcslen(v) + 1) {
		if (_wcsnicmp(v, L"SystemRoot=", 11) != 0)
			continue;
		found++;
		assert_int_equal(_wcsicmp(v + 11, only), 0);
	}
	assert_int_equal(found, 1);
	program_clear(&p);
}

static void
test_system_root(void **state)
{
	WCHAR system[MAX_PATH];
	char other[] = "systemroot=D:\\other";

	assert_true(GetSystemWindowsDirectoryW(system, MAX_PATH) > 0);
	expect(NULL, system);
	expect(other, L"D:\\other");
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(
	    test_system_root) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
