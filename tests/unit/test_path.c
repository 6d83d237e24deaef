/* SPDX-License-Identifier: ISC */
/*
 * path: what lies in a directory, and what only begins like it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util.h"

static void
test_lies_in(void **state)
{
	assert_true(path_lies_in("/a/b", "/a/b"));
	assert_true(path_lies_in("/a/b/c", "/a/b"));
	assert_true(path_lies_in("/a/b/c/d", "/a"));
	assert_true(path_lies_in("/a", "/"));
	assert_true(path_lies_in("/", "/"));
	assert_false(path_lies_in("/a/bc", "/a/b"));
	assert_false(path_lies_in("/a", "/a/b"));
	assert_false(path_lies_in("/b/a", "/a"));
	assert_false(path_lies_in("/", "/a"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lies_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
