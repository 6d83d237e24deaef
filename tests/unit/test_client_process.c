/* SPDX-License-Identifier: ISC */
/*
 * process: whatever order events come in, live, missing or again, they are
 * handed out once and in the order of their numbers.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client_process_case.h"

static void
test_in_order(void **state)
{
	struct fixture *f = *state;

	event(f, "output", 1, A);
	event(f, "output", 2, ",\"stream\":\"stderr\",\"chunk\":\"Yg==\"");
	event(f, "output", 3, ",\"stream\":\"pty\",\"chunk\":\"Yw==\"");
	event(f, "exited", 4, ",\"exitCode\":9,\"sandboxDenied\":true");
	event(f, "output", 5, A);
	event(f, "closed", 6, "");
	assert_seen(f, "out:a err:b tty:c exit:9! out:a closed ");
	assert_null(asked(f));
	/* Nothing counts behind the last. */
	event(f, "output", 7, A);
	assert_seen(f, "");
}

static void
test_again(void **state)
{
	struct fixture *f = *state;

	event(f, "output", 1, A);
	event(f, "output", 1, A);
	event(f, "output", 2, B);
	event(f, "output", 1, A);
	event(f, "exited", 3, EXIT(0));
	event(f, "exited", 3, EXIT(1));
	assert_seen(f, "out:a out:b exit:0 ");
}

static void
test_missing_is_read(void **state)
{
	struct fixture *f = *state;

	event(f, "output", 1, A);
	event(f, "output", 3, C);
	assert_non_null(strstr(asked(f), "\"afterSeq\":1"));
	/* It waits, and so does what comes behind it. */
	event(f, "exited", 4, EXIT(5));
	assert_seen(f, "out:a ");
	answer(f, READ(CHUNK(2, "Yg=="), 3, RUNS));
	assert_seen(f, "out:b out:c exit:5 ");
}

static void
test_read_goes_beyond_what_is_held(void **state)
{
	struct fixture *f = *state;

	event(f, "output", 2, B);
	answer(
	    f, READ(CHUNK(1, "YQ==") "," CHUNK(2, "Yg==") "," CHUNK(3, "Yw=="),
		   6, CLOSED));
	assert_seen(f, "out:a out:b out:c exit:3 closed ");
}

static void
test_lost_is_counted(void **state)
{
	struct fixture *f = *state;

	event(f, "output", 1, A);
	event(f, "output", 9, A);
	/* 2 to 7 are gone; 6 was the exit. */
	answer(f, READ(CHUNK(8, "Yg=="), 9, EXITED));
	assert_seen(f, "out:a gap:5/0 out:b exit:3 out:a ");
}

static void
test_lost_bytes_and_their_place(void **state)
{
	struct fixture *f = *state;

	event(f, "output", 1, A);
	event(f, "closed", 9, "");
	answer(
	    f, READ(CHUNK(2, "Yg==") "," CHUNK(7, "Yw=="), 8,
		   RUNS ",\"gap\":{\"afterSeq\":2,\"lastSeq\":6,\"bytes\":10,"
			"\"endBytes\":12}"));
	assert_non_null(strstr(asked(f), "\"afterSeq\":7"));
	assert_seen(f, "out:a out:b gap:4/10 out:c ");
	answer(f, READ("", 10, CLOSED));
	assert_seen(f, "exit:3 closed ");
}

static void
test_resume(void **state)
{
	struct fixture *f = *state;

	event(f, "output", 1, A);
	calls_lost(f->client);
	process_resume_all(f->client);
	assert_non_null(strstr(asked(f), "\"afterSeq\":1"));
	/* Lost again before the answer: the same request, sent again. */
	calls_lost(f->client);
	calls_resume(f->client);
	process_resume_all(f->client);
	event(f, "output", 3, C);
	answer(f, READ(CHUNK(1, "YQ==") "," CHUNK(2, "Yg=="), 3, RUNS));
	assert_null(asked(f));
	assert_seen(f, "out:a out:b out:c ");
}

static void
test_forgotten(void **state)
{
	struct fixture *f = *state;

	process_resume_all(f->client);
	answer(f, "\"error\":{\"code\":-32600,\"message\":\"unknown\"}");
	assert_seen(f, "failed:-1 ");
}

static void
test_bad_answers(void **state)
{
	static const char *const bad[] = { "\"result\":{}", "\"result\":7",
		"\"result\":{\"chunks\":[{}],\"nextSeq\":2}",
		"\"result\":{\"chunks\":[{\"seq\":1,\"stream\":\"x\","
		"\"chunk\":\"\"}],\"nextSeq\":2}",
		"\"result\":{\"chunks\":[{\"seq\":1,\"stream\":\"stdout\","
		"\"chunk\":\"*\"}],\"nextSeq\":2}" };

	teardown(state);
	for (size_t i = 0; i < nitems(bad); i++) {
		struct fixture *f;

		setup_attached(state);
		f = *state;
		process_resume_all(f->client);
		answer(f, bad[i]);
		assert_seen(f, "failed:-1 ");
		teardown(state);
	}
	setup_attached(state);
}

/* Malformed notifications are missing ones. */
static void
test_bad_events(void **state)
{
	struct fixture *f = *state;

	event(f, "output", 1, "");
	event(f, "output", 1, OUT("*"));
	event(f, "exited", 1, "");
	say(f, "{\"method\":\"process/output\",\"params\":7}");
	say(f, "{\"method\":\"process/output\"}");
	assert_seen(f, "");
	event(f, "output", 2, B);
	answer(f, READ(CHUNK(1, "YQ=="), 2, RUNS));
	assert_seen(f, "out:a out:b ");
}

static void
test_freed_in_a_callback(void **state)
{
	struct fixture *f = *state;

	f->free_at_exit = true;
	process_resume_all(f->client);
	answer(f, READ(CHUNK(1, "YQ=="), 4, CLOSED));
	assert_seen(f, "out:a exit:3 ");
	event(f, "output", 5, A);
	assert_seen(f, "");
}

static void
test_over(void **state)
{
	struct fixture *f = *state;

	process_resume_all(f->client);
	client_over(f->client, EXECD_FAILURE_LOST);
	assert_seen(f, "failed:-1 ");
	assert_null(asked(f));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ATTACHED(test_in_order),
		ATTACHED(test_again),
		ATTACHED(test_missing_is_read),
		ATTACHED(test_read_goes_beyond_what_is_held),
		ATTACHED(test_lost_is_counted),
		ATTACHED(test_lost_bytes_and_their_place),
		ATTACHED(test_resume),
		ATTACHED(test_forgotten),
		ATTACHED(test_bad_answers),
		ATTACHED(test_bad_events),
		ATTACHED(test_freed_in_a_callback),
		ATTACHED(test_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
