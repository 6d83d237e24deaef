/* SPDX-License-Identifier: ISC */
/*
 * placeholder: made, shared, taken away by the last user, and never anybody's
 * own.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "placeholder.h"
#include "util.h"

static char dir[64], path[128];

static int
make_place(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/execd-mask-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/.git", dir);
	return 0;
}

/* Fails when a test left something. */
static int
remove_place(void **state)
{
	return rmdir(dir);
}

static struct placeholder
placeholder_of(bool directory)
{
	return (struct placeholder){
		.path = path, .directory = directory, .fd = -1
	};
}

static void
test_made_and_removed(void **state)
{
	for (int directory = 0; directory < 2; directory++) {
		struct placeholder m = placeholder_of(directory);
		struct stat st;

		assert_int_equal(placeholder_take(&m, NULL), 0);
		assert_int_equal(lstat(path, &st), 0);
		assert_true(placeholder_is(&st) && m.fd >= 0);
		assert_int_equal(
		    st.st_mode, directory ? S_IFDIR | 0555 : S_IFREG | 0600);
		assert_int_equal(m.seen.inode, st.st_ino);
		assert_int_equal(m.seen.device, st.st_dev);
		placeholder_leave(&m);
		assert_int_equal(m.fd, -1);
		assert_int_equal(lstat(path, &st), -1);
		placeholder_leave(&m); /* nothing to leave */
	}
}

static void
test_shared(void **state)
{
	struct placeholder a = placeholder_of(true), b = placeholder_of(true);

	assert_int_equal(placeholder_take(&a, NULL), 0);
	assert_int_equal(placeholder_take(&b, NULL), 0);
	assert_int_equal(a.seen.inode, b.seen.inode);
	placeholder_leave(&a);
	assert_int_equal(access(path, F_OK), 0);
	placeholder_leave(&b);
	assert_int_equal(access(path, F_OK), -1);
}

/* What came first, or was put into it, or took its place, is left alone. */
static void
test_somebody_elses(void **state)
{
	char inner[160], aside[160];
	struct placeholder m = placeholder_of(true);

	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(placeholder_take(&m, NULL), 0);
	placeholder_leave(&m);
	assert_int_equal(rmdir(path), 0);

	assert_int_equal(placeholder_take(&m, NULL), 0);
	snprintf(inner, sizeof(inner), "%s/x", path);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(mkdir(inner, 0755), 0);
	placeholder_leave(&m);
	assert_int_equal(rmdir(inner), 0);
	assert_int_equal(rmdir(path), 0);

	assert_int_equal(placeholder_take(&m, NULL), 0);
	snprintf(aside, sizeof(aside), "%s/aside", dir);
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(mkdir(path, 0555), 0);
	placeholder_leave(&m);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(aside), 0);
}

/* A file of the other kind is covered as it is. */
static void
test_other_kind(void **state)
{
	struct placeholder m = placeholder_of(true);
	int fd = open(path, O_WRONLY | O_CREAT, 0644);

	assert_true(fd >= 0);
	assert_int_equal(placeholder_take(&m, NULL), 0);
	assert_false(m.directory);
	assert_int_equal(m.seen.type, FS_FILE);
	placeholder_leave(&m);
	close(fd);
	assert_int_equal(unlink(path), 0);
}

static void
test_held(void **state)
{
	struct placeholder m = placeholder_of(true);
	int fd;

	assert_int_equal(mkdir(path, 0755), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(placeholder_take(&m, NULL), -EBUSY);
	assert_int_equal(m.fd, -1);
	close(fd);
	assert_int_equal(rmdir(path), 0);
}

/* Somebody else is taking his away, and is in the middle of it for 5 ms. */
static void
test_taken_away(void **state)
{
	const struct timespec middle = { .tv_nsec = 5 * 1000 * 1000 };
	struct placeholder m = placeholder_of(true);
	int fd, status;
	pid_t pid;

	assert_int_equal(mkdir(path, 0555), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		nanosleep(&middle, NULL);
		_exit(rmdir(path));
	}
	close(fd); /* the child's is the last one */
	assert_int_equal(placeholder_take(&m, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	placeholder_leave(&m);
	assert_int_equal(access(path, F_OK), -1);
}

/* Neither through a link on the way nor through one in its place. */
static void
test_links(void **state)
{
	char through[160];
	struct placeholder m = placeholder_of(true);

	assert_int_equal(symlink("/tmp", path), 0);
	assert_int_equal(placeholder_take(&m, NULL), -ELOOP);
	snprintf(through, sizeof(through), "%s/x", path);
	m.path = through;
	assert_int_equal(placeholder_take(&m, NULL), -ENOTDIR);
	snprintf(through, sizeof(through), "%s/x/y", path);
	assert_int_equal(placeholder_take(&m, NULL), -ELOOP);
	assert_int_equal(m.fd, -1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(placeholder_take(&m, NULL), -ENOENT);
}

static const struct siphash_key key = { 1, 2 }, other = { 1, 3 };

static void
test_cleanup(void **state)
{
	struct placeholder a = placeholder_of(true), b = placeholder_of(true);

	assert_int_equal(placeholder_take(&a, &key), 0);
	placeholder_cleanup(path, &key, true);
	assert_int_equal(access(path, F_OK), 0); /* in use */
	close(a.fd);				 /* its user died */
	assert_int_equal(placeholder_take(&b, &other), 0);
	placeholder_cleanup(path, &key, true);
	assert_int_equal(access(path, F_OK), 0);
	close(b.fd);
	placeholder_cleanup(path, &other, true);
	assert_int_equal(access(path, F_OK), 0); /* it was the first one's */
	placeholder_cleanup(path, &key, true);
	assert_int_equal(access(path, F_OK), -1);
	placeholder_cleanup(path, &key, true);
	assert_int_equal(mkdir(path, 0555), 0);
	placeholder_cleanup(
	    path, &key, true); /* no placeholder: its time is now */
	assert_int_equal(rmdir(path), 0);
}

/* As a hard stop leaves one behind. */
static void
leave_behind(bool directory, struct stat *st)
{
	struct placeholder m = placeholder_of(directory);

	assert_int_equal(placeholder_take(&m, &key), 0);
	close(m.fd);
	assert_int_equal(lstat(path, st), 0);
}

static void
set_time(const char *at, const struct stat *st)
{
	const struct timespec times[2] = { st->st_mtim, st->st_mtim };

	assert_int_equal(utimensat(AT_FDCWD, at, times, 0), 0);
}

/* With the mode and the time of the placeholder, and another inode or path. */
static void
test_cleanup_knows_its_own(void **state)
{
	char aside[160], inner[160];
	struct stat st;

	snprintf(aside, sizeof(aside), "%s/aside", dir);
	snprintf(inner, sizeof(inner), "%s/x", path);
	leave_behind(true, &st);
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(mkdir(path, 0555), 0);
	set_time(path, &st);
	placeholder_cleanup(path, &key, true);
	placeholder_cleanup(aside, &key, true);
	assert_int_equal(access(aside, F_OK), 0);
	assert_int_equal(rmdir(path), 0);
	/* Filled, with everything as it was. */
	assert_int_equal(rename(aside, path), 0);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(mkdir(inner, 0755), 0);
	assert_int_equal(chmod(path, 0555), 0);
	set_time(path, &st);
	placeholder_cleanup(path, &key, true);
	assert_int_equal(access(inner, F_OK), 0);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(rmdir(inner), 0);
	assert_int_equal(rmdir(path), 0);
}

static void
test_cleanup_of_files(void **state)
{
	struct stat st;
	int fd;

	leave_behind(false, &st);
	placeholder_cleanup(path, &other, true);
	assert_int_equal(access(path, F_OK), 0);
	placeholder_cleanup(path, &key, true);
	assert_int_equal(access(path, F_OK), -1);
	leave_behind(false, &st);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	set_time(path, &st);
	placeholder_cleanup(path, &key, true);
	assert_int_equal(access(path, F_OK), 0);
	/* Neither through a link to one. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("nowhere", path), 0);
	placeholder_cleanup(path, &key, true);
	assert_int_equal(unlink(path), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made_and_removed),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_somebody_elses),
		cmocka_unit_test(test_other_kind),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_taken_away),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_cleanup),
		cmocka_unit_test(test_cleanup_knows_its_own),
		cmocka_unit_test(test_cleanup_of_files),
	};

	return cmocka_run_group_tests(tests, make_place, remove_place);
}
