/* SPDX-License-Identifier: ISC */
/*
 * wide_pipe: a busy pipe gets more room, an idle one does not, and one runner
 * takes its share of the user's and no more.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "input.h"
#include "util.h"

#define ENOUGH 4  /* times full */
#define SHARE  16 /* wide ones of a runner */

struct end {
	int fds[2];
	struct wide_pipe wide;
};

static void
fill(struct end *e, unsigned times)
{
	while (times-- > 0)
		wide_pipe_note_full(&e->wide, e->fds[1]);
}

static void
open_end(struct end *e)
{
	*e = (struct end){ 0 };
	assert_int_equal(pipe2(e->fds, O_CLOEXEC), 0);
}

static void
close_end(struct end *e)
{
	wide_pipe_end(&e->wide);
	close(e->fds[0]);
	close(e->fds[1]);
}

/* This user's pipes may all be in use by somebody else. */
static bool
kernel_permits(void)
{
	struct end e;
	int got;

	open_end(&e);
	got = fcntl(e.fds[0], F_SETPIPE_SZ, 1 << 20);
	close_end(&e);
	return got > 0;
}

static void
test_busy(void **state)
{
	struct end e;
	int before;

	if (!kernel_permits())
		skip();
	open_end(&e);
	before = fcntl(e.fds[0], F_GETPIPE_SZ);
	fill(&e, ENOUGH - 1);
	assert_int_equal(fcntl(e.fds[0], F_GETPIPE_SZ), before);
	fill(&e, 1);
	assert_true(fcntl(e.fds[0], F_GETPIPE_SZ) > before);
	assert_true(e.wide.wide);
	close_end(&e);
	assert_false(e.wide.wide);
}

static void
test_share(void **state)
{
	struct end ends[SHARE + 1];
	unsigned wide = 0;

	for (size_t i = 0; i < nitems(ends); i++) {
		open_end(&ends[i]);
		fill(&ends[i], ENOUGH);
		wide += ends[i].wide.wide;
	}
	assert_true(wide <= SHARE);
	for (size_t i = 0; i < nitems(ends); i++)
		close_end(&ends[i]);
	if (!kernel_permits())
		skip();
	/* All of it came back. */
	open_end(&ends[0]);
	fill(&ends[0], ENOUGH);
	assert_true(ends[0].wide.wide);
	close_end(&ends[0]);
}

/* A terminal or a socket: nothing to widen, and nothing is taken. */
static void
test_no_pipe(void **state)
{
	struct end e = { 0 };

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, e.fds), 0);
	fill(&e, 2 * ENOUGH);
	assert_false(e.wide.wide);
	close_end(&e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_no_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
