/* SPDX-License-Identifier: ISC */
/*
 * input: a bounded queue in front of a pipe, in order, each byte once.
 */
#include <event2/event.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "input.h"

#define CHUNK_BYTES 65536

struct fixture {
	struct event_base *base;
	struct input input;
	int read_fd;
	unsigned accepted, refused;
	char chunk[CHUNK_BYTES];
};

static void
count_answer(void *arg, enum input_status status)
{
	struct fixture *f = arg;

	if (status == INPUT_ACCEPTED)
		f->accepted++;
	else
		f->refused++;
}

static int
setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	f->base = event_base_new();
	f->read_fd = fds[0];
	input_open(&f->input, f->base, fds[1]);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	input_clear(&f->input);
	event_base_free(f->base);
	close(f->read_fd);
	free(f);
	return 0;
}

/* Reads until the end of file, letting the queue write. */
static size_t
read_all(struct fixture *f)
{
	static char text[CHUNK_BYTES];
	size_t total = 0;
	ssize_t n;

	while ((n = read(f->read_fd, text, sizeof(text))) != 0) {
		if (n > 0)
			total += (size_t)n;
		event_base_loop(f->base, EVLOOP_NONBLOCK);
	}
	return total;
}

/* Writes until one has to wait for room. Returns how many were made. */
static unsigned
fill(struct fixture *f, struct slice id)
{
	struct slice data = { f->chunk, sizeof(f->chunk) };
	unsigned n = 1;

	while (
	    input_write(&f->input, id, data, count_answer, f) == INPUT_ACCEPTED)
		n++;
	return n;
}

/* A write without an id that had to wait is no id that was accepted before:
 * the next one is written as well. */
static void
test_no_id_is_remembered(void **state)
{
	struct fixture *f = *state;
	struct slice data = { f->chunk, sizeof(f->chunk) };
	unsigned written = fill(f, SLICE(""));
	static char text[CHUNK_BYTES];
	size_t total = 0;

	while (f->accepted == 0) {
		ssize_t n = read(f->read_fd, text, sizeof(text));

		assert_true(n > 0);
		total += (size_t)n;
		event_base_loop(f->base, EVLOOP_NONBLOCK);
	}
	input_write(&f->input, SLICE(""), data, count_answer, f);
	input_finish(&f->input);
	total += read_all(f);
	assert_int_equal(total, (size_t)(written + 1) * sizeof(f->chunk));
	assert_int_equal(f->input.fd, -1);
	assert_int_equal(f->input.queued + f->input.waiting, 0);
}

/* End of file goes behind everything, also behind what waits for room. */
static void
test_finish_is_queued(void **state)
{
	struct fixture *f = *state;
	unsigned written = fill(f, SLICE(""));

	input_finish(&f->input);
	input_finish(&f->input);
	assert_int_equal(
	    input_write(&f->input, SLICE("late"), SLICE("x"), count_answer, f),
	    INPUT_CLOSED);
	assert_int_equal(read_all(f), (size_t)written * sizeof(f->chunk));
	assert_int_equal(f->accepted, 1);
	assert_int_equal(f->refused, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    test_no_id_is_remembered, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_finish_is_queued, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
