/* SPDX-License-Identifier: ISC */
/*
 * process: starts, answered, refused, sent again after a lost connection.
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
start(struct fixture *f)
{
	static const char *const argv[] = { "true", NULL };
	static const struct execd_start s = { .argv = argv };

	f->client->has_info = true;
	assert_int_equal(json_parse(&f->client->info, "{}", 2), 0);
	assert_int_equal(
	    execd_process_start(f->client, &s, &events, f, &f->process), 0);
}

static void
test_started(void **state)
{
	struct fixture *f = *state;

	start(f);
	answer(f, "\"result\":{\"processId\":\"p\",\"sandboxType\":\"none\"}");
	assert_seen(f, "started:none ");
}

static void
test_refused(void **state)
{
	struct fixture *f = *state;

	start(f);
	answer(
	    f, "\"error\":{\"code\":-32600,\"message\":\"x already exists\"}");
	assert_seen(f, "failed:-32600 ");
}

/* Sent twice, because the first answer was lost: it was started once. */
static void
test_repeated(void **state)
{
	struct fixture *f = *state;

	start(f);
	calls_lost(f->client);
	calls_resume(f->client);
	process_resume_all(f->client);
	answer(
	    f, "\"error\":{\"code\":-32600,\"message\":\"x already exists\"}");
	assert_seen(f, "started:unknown ");
	answer(f, READ(CHUNK(1, "YQ=="), 4, CLOSED));
	assert_seen(f, "out:a exit:3 closed ");
}

static void
test_bad_starts(void **state)
{
	static const char *const words[] = { "\xff", NULL };
	static const char *const fine[] = { "true", NULL };
	static const char *const nothing[] = { "NAME", NULL };
	const struct execd_start bad[] = { { .argv = words },
		{ .argv = fine, .env = words },
		{ .argv = fine, .env = nothing },
		{ .argv = fine, .cwd = "relative" },
		{ .argv = fine, .timeout_ms = 1 } };
	static const int expected[] = { -EILSEQ, -EILSEQ, -EINVAL, -EINVAL,
		-ENOTSUP };
	struct fixture *f = *state;

	start(f);
	for (size_t i = 0; i < nitems(bad); i++)
		assert_int_equal(execd_process_start(f->client, &bad[i],
				     &events, f, &f->process),
		    expected[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		UNSTARTED(test_started),
		UNSTARTED(test_refused),
		UNSTARTED(test_repeated),
		UNSTARTED(test_bad_starts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
