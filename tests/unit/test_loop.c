/* SPDX-License-Identifier: ISC */
/*
 * loop: what is not watched for ends the program, a file does not, and where
 * the user has no watch left the program goes on.
 */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../torture/no_watches.h"
#include "loop.h"
#include "util.h"

static void
never_cb(evutil_socket_t fd, short what, void *arg)
{
	_exit(9);
}

static struct event_base *
make_base(int flags)
{
	struct event_config *c = event_config_new();
	struct event_base *base;

	event_config_set_flag(c, flags);
	base = event_base_new_with_config(c);
	event_config_free(c);
	return base;
}

/* In a process of its own: how it ends when it waits for fd. */
static int
status_of_waiting(int flags, int fd)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct event_base *base = make_base(flags);
		struct event ev;

		loop_trust();
		event_assign(&ev, base, fd, EV_READ, never_cb, NULL);
		loop_add(&ev, NULL);
		event_base_loop(base, EVLOOP_NONBLOCK);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
test_a_descriptor_that_is_not_open(void **state)
{
	assert_int_equal(status_of_waiting(0, 900), 1);
	assert_int_equal(
	    status_of_waiting(EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST, 900), 1);
}

static void
test_a_file(void **state)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(status_of_waiting(0, fd), 0);
	assert_int_equal(
	    status_of_waiting(EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST, fd), 0);
}

static void
test_a_pipe(void **state)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(status_of_waiting(0, fds[0]), 0);
	assert_int_equal(
	    status_of_waiting(EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST, fds[0]), 0);
	close(fds[0]);
	close(fds[1]);
}

static void
count_cb(evutil_socket_t fd, short what, void *arg)
{
	++*(unsigned *)arg;
}

/* Any number of times, and it is watched for once or not at all. */
static void
test_watching(void **state)
{
	struct event_base *base = make_base(0);
	bool watching = false;
	unsigned count = 0;
	struct event ev;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	close(fds[1]);
	event_assign(&ev, base, fds[0], EV_READ | EV_PERSIST, count_cb, &count);
	for (int i = 0; i < 4; i++) {
		loop_watch(&ev, &watching, i < 2);
		assert_true(watching == (i < 2));
		event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		assert_int_equal(count, i < 2 ? i + 1 : 2);
	}
	event_base_free(base);
	close(fds[0]);
}

static void *
no_memory(void *p, size_t size)
{
	return NULL;
}

/* For one more timer. */
static void
test_no_memory(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct event_base *base = make_base(0);
		struct event ev;

		event_assign(&ev, base, -1, 0, never_cb, NULL);
		event_set_mem_functions(malloc, no_memory, free);
		loop_add(&ev, &(struct timeval){ .tv_sec = 1 });
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
}

static void
read_cb(evutil_socket_t fd, short what, void *arg)
{
	char byte;

	if (read(fd, &byte, 1) == 1)
		++*(unsigned *)arg;
}

/* Two descriptors, one of them watched before; a timer; one that may be
 * written to; and one that is no longer wanted. */
static void
work_without_watches(bool from_the_start)
{
	struct event before, after, timer, out, gone;
	unsigned bytes = 0, fired = 0, writable = 0, never = 0;
	struct event_base *base;
	int a[2], b[2];

	if (pipe2(a, O_CLOEXEC) < 0 || pipe2(b, O_CLOEXEC) < 0)
		_exit(7);
	if (from_the_start && take_all_watches() < 0)
		_exit(8);
	base = loop_new();
	event_assign(
	    &before, base, a[0], EV_READ | EV_PERSIST, read_cb, &bytes);
	loop_add(&before, NULL);
	event_base_loop(base, EVLOOP_NONBLOCK);
	if (!from_the_start && take_all_watches() < 0)
		_exit(8);
	event_assign(&after, base, b[0], EV_READ | EV_PERSIST, read_cb, &bytes);
	loop_add(&after, NULL);
	event_assign(&gone, base, b[0], EV_READ, count_cb, &never);
	loop_add(&gone, NULL);
	event_del(&gone);
	if (write(b[1], "xy", 2) != 2 || write(a[1], "xy", 2) != 2)
		_exit(7);
	while (bytes < 4)
		loop_turn(base);
	event_assign(&timer, base, -1, 0, count_cb, &fired);
	loop_add_ms(&timer, 1);
	while (fired == 0)
		loop_turn(base);
	event_assign(&out, base, b[1], EV_WRITE, count_cb, &writable);
	loop_add(&out, NULL);
	close(a[1]); /* an end is an event, too */
	while (writable == 0)
		loop_turn(base);
	_exit(bytes == 4 && fired == 1 && writable == 1 && never == 0 ? 0 : 6);
}

static void
test_no_watch_left(void **state)
{
	for (int from_the_start = 0; from_the_start < 2; from_the_start++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			alarm(30);
			work_without_watches(from_the_start == 1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_descriptor_that_is_not_open),
		cmocka_unit_test(test_a_file),
		cmocka_unit_test(test_a_pipe),
		cmocka_unit_test(test_watching),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_no_watch_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
