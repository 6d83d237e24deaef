/*
 * inflight: files without a descriptor come back as they were, in any order,
 * and where one cannot go or come, it stays where it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "inflight.h"
#include "util.h"

#define MANY 200

/* The write end of a pipe, by which the file is known again. */
static int
make_file(int *other)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	*other = fds[0];
	return fds[1];
}

static void
assert_same_file(int fd, int other)
{
	char byte = 0;

	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(read(other, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

static unsigned
open_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void
test_any_order(void **state)
{
	struct inflight f = INFLIGHT_INITIALIZER;
	int keys[MANY], others[MANY];
	unsigned before = open_descriptors();

	for (int i = 0; i < MANY; i++) {
		keys[i] = inflight_put(&f, make_file(&others[i]));
		assert_true(keys[i] >= 0);
	}
	assert_int_equal(
	    f.descriptors, 2 * ((MANY + INFLIGHT_BOX - 1) / INFLIGHT_BOX));
	assert_int_equal(open_descriptors(), before + MANY + f.descriptors);
	for (int i = 0; i < MANY; i++) {
		int j = i * 77 % MANY; /* each once */
		int fd = inflight_take(&f, keys[j]);

		assert_true(fd >= 0);
		assert_same_file(fd, others[j]);
		close(fd);
		close(others[j]);
	}
	assert_int_equal(f.descriptors, 0);
	assert_int_equal(open_descriptors(), before);
	inflight_clear(&f);
}

/* Nobody else holds it open. */
static void
test_closed_with_them(void **state)
{
	struct inflight f = INFLIGHT_INITIALIZER;
	unsigned before = open_descriptors();
	int other;
	char byte;

	assert_true(inflight_put(&f, make_file(&other)) >= 0);
	assert_int_equal(read(other, &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	inflight_clear(&f);
	assert_int_equal(read(other, &byte, 1), 0);
	close(other);
	assert_int_equal(open_descriptors(), before);
}

/* A new box is opened only when all others are full. */
static void
test_holes_are_filled(void **state)
{
	struct inflight f = INFLIGHT_INITIALIZER;
	int keys[3 * INFLIGHT_BOX], others[3 * INFLIGHT_BOX];

	for (int i = 0; i < 3 * INFLIGHT_BOX; i++)
		keys[i] = inflight_put(&f, make_file(&others[i]));
	for (int turn = 0; turn < 50; turn++) {
		int i = turn * 7 % (3 * INFLIGHT_BOX);
		int fd = inflight_take(&f, keys[i]);

		assert_same_file(fd, others[i]);
		keys[i] = inflight_put(&f, fd);
		assert_true(keys[i] >= 0);
		assert_int_equal(f.descriptors, 6);
	}
	inflight_clear(&f);
	for (int i = 0; i < 3 * INFLIGHT_BOX; i++)
		close(others[i]);
}

static void
limit_files(rlim_t n)
{
	struct rlimit r;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
	r.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
}

/* The lowest number that is not open: with that limit there is none free. */
static rlim_t
first_free(void)
{
	int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);

	assert_true(fd >= 0);
	close(fd);
	return (rlim_t)fd;
}

static void
test_no_number_is_free(void **state)
{
	struct inflight f = INFLIGHT_INITIALIZER;
	int others[3], keys[2], third, fd;

	for (int i = 0; i < 2; i++)
		keys[i] = inflight_put(&f, make_file(&others[i]));
	third = make_file(&others[2]);
	limit_files(first_free());
	assert_int_equal(inflight_take(&f, keys[1]), -EMFILE);
	assert_int_equal(inflight_take(&f, keys[0]), -EMFILE);
	limit_files(1024);
	for (int i = 1; i >= 0; i--) {
		fd = inflight_take(&f, keys[i]);
		assert_true(fd >= 0);
		assert_same_file(fd, others[i]);
		close(fd);
	}
	/* Nor is there one for a box: the file is still the caller's. */
	limit_files(first_free());
	assert_int_equal(inflight_put(&f, third), -EMFILE);
	limit_files(1024);
	assert_same_file(third, others[2]);
	close(third);
	for (int i = 0; i < 3; i++)
		close(others[i]);
	inflight_clear(&f);
}

/* Of a user who may have no more of them under way. The kernel looks at the
 * limit of whoever sends, unless he is privileged. */
static void
test_no_more_may_fly(void **state)
{
	struct inflight f = INFLIGHT_INITIALIZER;
	int others[4], keys[3], last, fd;

	if (geteuid() == 0 && seteuid(65534) < 0)
		skip();
	for (int i = 0; i < 3; i++)
		keys[i] = inflight_put(&f, make_file(&others[i]));
	last = make_file(&others[3]);
	limit_files(1); /* what is open stays open */
	assert_int_equal(inflight_put(&f, last), -ETOOMANYREFS);
	limit_files(1024);
	assert_same_file(last, others[3]);
	close(last);
	for (int i = 2; i >= 0; i--) {
		fd = inflight_take(&f, keys[i]);
		assert_same_file(fd, others[i]);
		close(fd);
	}
	for (int i = 0; i < 4; i++)
		close(others[i]);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
	inflight_clear(&f);
}

/* Those that may not fly on while another one is looked for: more than the
 * limit are under way, and a few numbers are free. */
static void
test_none_is_lost_on_the_way(void **state)
{
	struct inflight f = INFLIGHT_INITIALIZER;
	int other, file = make_file(&other), keys[MANY], fd;

	if (geteuid() == 0 && seteuid(65534) < 0)
		skip();
	for (int i = 0; i < MANY; i++)
		keys[i] = inflight_put(&f, fcntl(file, F_DUPFD_CLOEXEC, 0));
	limit_files(first_free() + 3);
	assert_int_equal(inflight_take(&f, keys[31]), -EMFILE);
	limit_files(1024);
	for (int i = MANY - 1; i >= 0; i--) {
		fd = inflight_take(&f, keys[i]);
		assert_true(fd >= 0);
		assert_same_file(fd, other);
		close(fd);
	}
	assert_int_equal(f.descriptors, 0);
	close(file);
	close(other);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
	inflight_clear(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_closed_with_them),
		cmocka_unit_test(test_holes_are_filled),
		cmocka_unit_test(test_no_number_is_free),
		cmocka_unit_test(test_no_more_may_fly),
		cmocka_unit_test(test_none_is_lost_on_the_way),
	};

	limit_files(1024);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
