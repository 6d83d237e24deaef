/* SPDX-License-Identifier: ISC */
/*
 * code_pages: what only starting needed is not held, and everything is there
 * when it is wanted again.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "code_pages.h"
#include "util.h"

static int
ascending(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Relocated, and then protected. */
static int (*const volatile order)(const void *, const void *) = ascending;
static char *const volatile text = (char *)(uintptr_t) "a string";

/* Of files, in pages: the third number of /proc/PID/statm. */
static long
file_pages(void)
{
	_cleanup_close_ int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char line[200] = "", *at = line;

	assert_true(fd >= 0 && read(fd, line, sizeof(line) - 1) > 0);
	strtol(at, &at, 10);
	strtol(at, &at, 10);
	return strtol(at, NULL, 10);
}

static void
use_everything(void)
{
	int numbers[] = { 3, 1, 2 };
	char out[40];

	qsort(numbers, nitems(numbers), sizeof(numbers[0]), order);
	snprintf(out, sizeof(out), "%d%d%d %s %.2f", numbers[0], numbers[1],
	    numbers[2], text, 0.25);
	assert_string_equal(out, "123 a string 0.25");
}

static void
test_given_back(void **state)
{
	long before, after;

	use_everything();
	before = file_pages();
	code_pages_give_back();
	after = file_pages();
	assert_true(after < before);
	use_everything();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
