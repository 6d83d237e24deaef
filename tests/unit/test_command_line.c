/* SPDX-License-Identifier: ISC */
/*
 * command_line: what a program of Windows takes apart again is what was put
 * together, and what cannot be put together is refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "command_line.h"

#define SHELL "C:\\windows\\system32\\cmd.exe"
#define ARGS(...)                                                              \
	{                                                                      \
		"x", __VA_ARGS__, NULL                                         \
	}

static const struct row {
	const char *program;
	const char *argv[6];
	const char *line; /* NULL: refused */
} rows[] = {
	/* plain */
	{ "C:\\a b.exe", ARGS("c"), "\"C:\\a b.exe\" c" },
	{ "C:\\a.exe", ARGS(""), "\"C:\\a.exe\" \"\"" },
	{ "C:\\a.exe", ARGS("a b", "\t"), "\"C:\\a.exe\" \"a b\" \"\t\"" },
	/* backslashes count only before a quote */
	{ "C:\\a.exe", ARGS("a\\b", "a\\\\"), "\"C:\\a.exe\" a\\b a\\\\" },
	{ "C:\\a.exe", ARGS("a b\\"), "\"C:\\a.exe\" \"a b\\\\\"" },
	{ "C:\\a.exe", ARGS("\""), "\"C:\\a.exe\" \"\\\"\"" },
	{ "C:\\a.exe", ARGS("a\\\"b"), "\"C:\\a.exe\" \"a\\\\\\\"b\"" },
	{ "C:\\a.exe", ARGS("%PATH%&|<>^"), "\"C:\\a.exe\" %PATH%&|<>^" },
	{ "C:\\a\"b.exe", ARGS("c"), NULL },
	/* cmd: one text between the first quote and the last */
	{ SHELL, ARGS("/c", "echo \"a\" & b"),
	    "\"" SHELL "\" /s /c \"echo \"a\" & b\"" },
	{ SHELL, ARGS("/d", "/C", "echo", "a b"),
	    "\"" SHELL "\" /d /s /C \"echo a b\"" },
	{ SHELL, ARGS("/k", "echo"), "\"" SHELL "\" /s /k \"echo\"" },
	{ SHELL, ARGS("/c", "echo a\r\ndel b"), NULL },
	{ SHELL, ARGS("/c", "echo a\ndel b"), NULL },
	{ SHELL, ARGS("/x \"/c", "/c", "a"), NULL },
	{ SHELL, ARGS("file", "/c"), "\"" SHELL "\" file /c" },
	{ "C:\\mycmd.exe", ARGS("/c", "a b"), "\"C:\\mycmd.exe\" /c \"a b\"" },
	/* a batch file is read by cmd, where quotes hide all but a few */
	{ "C:\\a b.bat", ARGS("c d", "&|<>^"),
	    "\"" SHELL "\" /d /s /c \"\"C:\\a b.bat\" \"c d\" \"&|<>^\"\"" },
	{ "C:\\a.CMD", ARGS("b"),
	    "\"" SHELL "\" /d /s /c \"\"C:\\a.CMD\" \"b\"\"" },
	{ "C:\\a.bat", ARGS("\"&calc"), NULL },
	{ "C:\\a.bat", ARGS("%PATH%"), NULL },
	{ "C:\\a.bat", ARGS("!x!"), NULL },
	{ "C:\\a.bat", ARGS("a\nb"), NULL },
	{ "C:\\a.bat", ARGS("a\rb"), NULL },
	{ "C:\\%a%.bat", ARGS("b"), NULL },
	/* and Windows drops dots and blanks at the end of its name */
	{ "C:\\a.bat. .", ARGS("%b"), NULL },
};

static void
test_lines(void **state)
{
	for (size_t i = 0; i < nitems(rows); i++) {
		char error[COMMAND_LINE_ERROR_MAX] = "";
		struct buf b;
		int err;

		buf_init(&b, 4096);
		err = command_line_build(&b, rows[i].program, SHELL,
		    (char *const *)rows[i].argv, error);
		buf_put_u8(&b, 0);
		if (rows[i].line == NULL &&
		    (err != -EINVAL || error[0] == '\0'))
			fail_msg("row %zu: %d %s", i, err, b.data);
		if (rows[i].line != NULL &&
		    (err != 0 || strcmp((char *)b.data, rows[i].line) != 0))
			fail_msg("row %zu: %d %s", i, err, b.data);
		buf_clear(&b);
	}
}

static void
test_names(void **state)
{
	assert_true(command_line_is_cmd("cmd"));
	assert_true(command_line_is_cmd("C:/Windows\\CMD.exe"));
	assert_false(command_line_is_cmd("cmd.com"));
	assert_false(command_line_is_cmd("xcmd"));
	assert_true(command_line_is_batch("a.bat"));
	assert_true(command_line_is_batch("a.Cmd ."));
	assert_false(command_line_is_batch("a.bat.exe"));
	assert_false(command_line_is_batch("bat"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
