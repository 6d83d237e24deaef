/* SPDX-License-Identifier: ISC */
/*
 * nearest: which name was meant.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nearest.h"
#include "util.h"

static const char *
meant(const char *given)
{
	static const char *const names[] = { "run", "shell", "cp", "attach",
		"environments", "watch", "wait" };
	struct nearest n = { .given = given };

	for (size_t i = 0; i < nitems(names); i++)
		nearest_try(&n, names[i]);
	return n.name != NULL ? n.name : "";
}

static void
test_meant(void **state)
{
	assert_string_equal(meant("runn"), "run");
	assert_string_equal(meant("atach"), "attach");
	assert_string_equal(meant("enviroments"), "environments");
	assert_string_equal(meant("shlel"), "shell");
	assert_string_equal(meant("wach"), "watch");
	assert_string_equal(meant("pc"), "cp");
	assert_string_equal(meant("forward"), "");
	assert_string_equal(meant("xy"), "");
	assert_string_equal(meant(""), "");
	assert_string_equal(
	    meant("environmentsenvironmentsenvironmentsenvironments"), "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
