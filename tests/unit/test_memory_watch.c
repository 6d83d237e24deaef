/* SPDX-License-Identifier: ISC */
/* memory_watch: what the kernel says of a process, and when to look again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory_watch.h"
#include "util.h"

static const char *const names[] = { "RssAnon", "VmSwap", NULL };

static bool
sum(const char *text, uint64_t *n)
{
	_cleanup_close_ int fd = memfd_create("status", MFD_CLOEXEC);
	size_t len = strlen(text);

	assert_int_equal(write(fd, text, len), (ssize_t)len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	*n = 0;
	return memory_watch_sum(fd, names, n);
}

static void
test_lines(void **state)
{
	static const struct {
		const char *text;
		bool found;
		uint64_t sum;
	} cases[] = {
		{ "Name:\tx\nRssAnon:\t     123 kB\nRssFile:\t 5 kB\n"
		  "VmSwap:\t       4 kB\nThreads:\t1\n",
		    true, 127 },
		{ "RssAnon:\t18014398509481983 kB\n", true, 18014398509481983 },
		/* a zombie */
		{ "Name:\tx\nState:\tZ (zombie)\n", false, 0 },
		{ "", false, 0 },
		/* names that only begin or end like these */
		{ "RssAnonymous:\t1 kB\nXRssAnon:\t2 kB\nRssAnon\t3 kB\n",
		    false, 0 },
		/* the kernel writes a newline in a name as \n */
		{ "Name:\tx\\nRssAnon:\t9 kB\nRssAnon:\t1 kB\n", true, 1 },
		/* no end of line, so the kernel has not written it whole */
		{ "RssAnon:\t1 kB\nVmSwap:\t12", true, 1 },
	};

	for (size_t i = 0; i < nitems(cases); i++) {
		uint64_t n;

		assert_int_equal(sum(cases[i].text, &n), cases[i].found);
		assert_true(n == cases[i].sum);
	}
}

/* A user can be in 65536 groups. */
static void
test_a_line_of_many_groups(void **state)
{
	static char text[800000] = "Groups:\t";
	static const char *const behind = "\nRssAnon:\t7 kB\n";

	for (size_t groups = 0; groups < 65536; groups += 257) {
		size_t at = 8;
		uint64_t n;

		for (size_t i = 0; i < groups; i++, at += 11)
			memcpy(text + at, "4294967294 ", 12);
		memcpy(text + at, behind, strlen(behind) + 1);
		assert_true(sum(text, &n));
		assert_int_equal(n, 7);
	}
}

static void
test_pause(void **state)
{
	const uint64_t mib = 1u << 20, gib = 1u << 30;

	assert_int_equal(memory_watch_pause(0, gib), 128);
	assert_int_equal(memory_watch_pause(gib / 2, gib), 64);
	assert_int_equal(memory_watch_pause(gib - mib, gib), 5);
	assert_int_equal(memory_watch_pause(gib, gib), 5);
	assert_int_equal(memory_watch_pause(2 * gib, gib), 5);
	assert_int_equal(memory_watch_pause(0, UINT64_MAX), 1000);
	assert_int_equal(memory_watch_pause(UINT64_MAX, 1), 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_a_line_of_many_groups),
		cmocka_unit_test(test_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
