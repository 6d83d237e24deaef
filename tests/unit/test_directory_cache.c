/* SPDX-License-Identifier: ISC */
/*
 * What directories hold, remembered: only while it holds.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "directory_cache.h"
#include "util.h"

/* Nothing but root's clock makes a directory old. /usr is. */
#define OLD "/usr"

static bool
count(void *arg, const char *name, enum fs_type type)
{
	size_t *n = arg;

	assert_string_equal(name, *n == 0 ? "bin" : "link");
	assert_int_equal(type, *n == 0 ? FS_DIRECTORY : FS_LINK);
	return ++*n < 2;
}

static struct directory_entry *
fill(const char *path)
{
	_cleanup_close_ int fd = open(OLD, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct directory_entry *e = directory_entry_new(path, fd);

	if (e == NULL)
		return NULL;
	directory_entry_add(e, "bin", FS_DIRECTORY);
	directory_entry_add(e, "link", FS_LINK);
	return e;
}

static void
test_found_while_it_is_the_same(void **state)
{
	struct directory_cache c = { 0 };
	struct directory_entry *e = fill(OLD);
	struct stat st, other;
	size_t n = 0;

	if (e == NULL)
		skip(); /* another file system, or a new one */
	directory_cache_put(&c, e);
	assert_int_equal(lstat(OLD, &st), 0);
	assert_ptr_equal(directory_cache_find(&c, OLD, &st), e);
	directory_entry_each(e, count, &n);
	assert_int_equal(n, 2);
	assert_null(directory_cache_find(&c, "/us", &st));
	other = st;
	other.st_ino++;
	assert_null(directory_cache_find(&c, OLD, &other));
	other = st;
	other.st_dev++;
	assert_null(directory_cache_find(&c, OLD, &other));
	other = st;
	other.st_ctim.tv_nsec ^= 1;
	assert_null(directory_cache_find(&c, OLD, &other));
	other = st;
	other.st_ctim.tv_sec++;
	assert_null(directory_cache_find(&c, OLD, &other));
	directory_cache_clear(&c);
	assert_null(directory_cache_find(&c, OLD, &st));
}

/* A change in the same step of the clock would not show. */
static void
test_not_what_changed_a_moment_ago(void **state)
{
	char dir[] = "/tmp/execd-cache-XXXXXX";
	int fd;

	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_null(directory_entry_new(dir, fd));
	close(fd);
	assert_int_equal(rmdir(dir), 0);
}

static void
test_not_of_a_foreign_file_system(void **state)
{
	int fd = open("/proc/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_null(directory_entry_new("/proc/sys", fd));
	close(fd);
}

static void
test_never_more_than_its_limit(void **state)
{
	struct directory_cache c = { 0 };
	char path[32], name[200];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < 2000; i++) {
		struct directory_entry *e;

		snprintf(path, sizeof(path), "/d%d", i);
		e = fill(path);
		if (e == NULL)
			skip();
		for (int j = 0; j < 100; j++)
			directory_entry_add(e, name, FS_FILE);
		directory_cache_put(&c, e);
		assert_true(c.bytes <= DIRECTORY_CACHE_BYTES);
	}
	assert_true(c.table.count > 0);
	directory_cache_clear(&c);
	assert_int_equal(c.bytes, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_while_it_is_the_same),
		cmocka_unit_test(test_not_what_changed_a_moment_ago),
		cmocka_unit_test(test_not_of_a_foreign_file_system),
		cmocka_unit_test(test_never_more_than_its_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
