/* SPDX-License-Identifier: ISC */
/*
 * loop: what is not watched for ends the program, a file does not.
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_descriptor_that_is_not_open),
		cmocka_unit_test(test_a_file),
		cmocka_unit_test(test_a_pipe),
		cmocka_unit_test(test_watching),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
