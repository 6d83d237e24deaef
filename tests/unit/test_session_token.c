/* SPDX-License-Identifier: ISC */
/*
 * session_token: which session an expired token may resume, and what a runner
 * is told of tokens.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker_main.h"
#include "broker_state.h"
#include "conf.h"
#include "identity.h"
#include "seqpacket.h"
#include "session_registry.h"
#include "util.h"

#define OPENED 1000000 /* seconds */

static struct identity ours = { .name = (char *)(uintptr_t) "a", .uid = 7 };
static struct identity namesake = { .name = (char *)(uintptr_t) "a", .uid = 8 };
static struct identity other = { .name = (char *)(uintptr_t) "b", .uid = 7 };
static struct conf conf = { .tokens.skew_s = 30,
	.limits.detached_ttl_ms = 80000 };
static struct registry the_sessions;
static struct broker m = { .conf = &conf, .sessions = &the_sessions };
static struct control_token had = { .there = true,
	.issuer = { 1 },
	.key = { 9 },
	.since_s = OPENED,
	.until_s = OPENED + 60,
	.subject = "alice" };
static struct session session;
static int runner; /* its end of the control channel */

static int
set_up(void **state)
{
	int pair[2];

	session = (struct session){ .identity = &ours,
		.bearer = &had,
		.state = SESSION_STATE_DETACHED };
	session.runner.pid = 4711;
	session.runner.version = RUNNER_VERSION;
	if (seqpacket_pair(pair) < 0)
		return -1;
	assert_int_equal(session_control_watch(&session, pair[0]), 0);
	runner = pair[1];
	table_insert(&the_sessions.by_pid, &session.by_pid, 4711);
	return 0;
}

static int
tear_down(void **state)
{
	table_remove(&the_sessions.by_pid, &session.by_pid);
	table_clear(&the_sessions.by_pid);
	watch_close(&session.runner.control);
	close(runner);
	return 0;
}

/* Both functions agree. */
static bool
may(const struct identity *identity, struct control_token t)
{
	bool resume = session_token_may_resume(&m, &session, identity, &t);

	assert_int_equal(session_token_has_any(&m, identity, &t), resume);
	return resume;
}

static void
test_whose_it_is(void **state)
{
	struct control_token t = had;

	assert_true(may(&ours, t));
	assert_false(may(&namesake, t));
	assert_false(may(&other, t));
	t.key[0] = 1;
	assert_true(may(&ours, t));
	t.issuer[31] = 1;
	assert_false(may(&ours, t));
	t = had;
	snprintf(t.subject, sizeof(t.subject), "alic");
	assert_false(may(&ours, t));
	snprintf(t.subject, sizeof(t.subject), "alice2");
	assert_false(may(&ours, t));
	t.subject[0] = '\0';
	assert_false(may(&ours, t));
	session.bearer = NULL;
	assert_false(may(&ours, t));
}

/* No longer ago than a session can live, or than it has been living. */
static void
test_when_it_expired(void **state)
{
	const int64_t now = time(NULL);
	const struct {
		uint32_t deadline_s, kept_s;
		int64_t since, until;
		bool may;
	} rows[] = {
		{ 0, 0, OPENED, OPENED - 31, false },
		{ 0, 0, OPENED, OPENED - 30, true },
		{ 0, 0, OPENED, OPENED, true },
		{ 0, 0, OPENED, INT64_MAX, true },
		{ 0, 0, OPENED, 0, false },
		{ 0, 0, OPENED, -1, false },
		{ 0, 0, OPENED, INT64_MIN, false },
		{ 0, 0, now, now - 80, true }, /* detached-ttl */
		{ 0, 0, now, now - 200, false },
		{ 0, 3600, now, now - 3600, true },
		{ 0, 3600, now, now - 3800, false },
		{ 0, 3600, now - 7200, now - 7200, true },
		{ 0, 3600, now - 7200, now - 7400, false },
		{ 500, 3600, now, now - 500, true },
		{ 500, 3600, now, now - 600, false },
		{ 500, 3600, now, INT64_MIN, false },
		{ 500, 3600, 0, INT64_MIN, false },
	};

	for (size_t i = 0; i < nitems(rows); i++) {
		struct control_token t = had, first = had;

		ours.limits.session_deadline_ms = 1000 * rows[i].deadline_s;
		ours.limits.max_detached_ttl_ms = 1000 * rows[i].kept_s;
		first.since_s = (uint64_t)rows[i].since;
		session.bearer = &first;
		t.until_s = (uint64_t)rows[i].until;
		if (may(&ours, t) != rows[i].may)
			fail_msg("row %zu", i);
	}
}

static void
test_the_state_of_its_session(void **state)
{
	static const enum session_state states[] = { SESSION_STATE_ATTACHED,
		SESSION_STATE_DETACHED, SESSION_STATE_LEAVING,
		SESSION_STATE_TERMINATING, SESSION_STATE_SPARE,
		SESSION_STATE_FOREIGN };

	for (size_t i = 0; i < nitems(states); i++) {
		session.state = states[i];
		assert_int_equal(may(&ours, had), i < 2);
	}
	session.state = SESSION_STATE_DETACHED;
	session.runner.hung_up = true;
	assert_false(may(&ours, had));
}

/* It may be the token's. Nobody knows, and another identity's it is not. */
static void
test_a_runner_that_has_not_answered(void **state)
{
	session.state = SESSION_STATE_UNKNOWN;
	session.bearer = NULL;
	assert_true(session_token_has_any(&m, &ours, &had));
	assert_false(session_token_has_any(&m, &other, &had));
	assert_false(session_token_may_resume(&m, &session, &ours, &had));
}

/* False: it is told nothing. */
static bool
hear(struct control_token *t)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n = seqpacket_recv(runner, packet, sizeof(packet), fds, &nfds);

	if (n == -EAGAIN)
		return false;
	assert_true(n > 0 && nfds == 0);
	assert_int_equal(
	    control_get(packet, (size_t)n, RUNNER_COMMAND_TOKEN, t), 0);
	return true;
}

static void
test_what_the_runner_is_told(void **state)
{
	struct control_token t = had, heard;

	session.bearer = NULL;
	session_token_set(&session, NULL);
	assert_false(hear(&heard));
	session_token_set(&session, session_token_copy(&t));
	assert_true(hear(&heard) && heard.since_s == OPENED);
	/* Another one of the same owner comes later. */
	t.since_s += 50;
	t.key[5] = 5;
	session_token_set(&session, session_token_copy(&t));
	assert_true(hear(&heard) && heard.since_s == OPENED);
	assert_int_equal(heard.key[5], 5);
	/* The next owner has had it since then. */
	snprintf(t.subject, sizeof(t.subject), "bob");
	session_token_set(&session, session_token_copy(&t));
	assert_true(hear(&heard) && heard.since_s == OPENED + 50);
	assert_string_equal(heard.subject, "bob");
	session_token_set(&session, NULL);
	assert_true(hear(&heard) && !heard.there);
	assert_null(session.bearer);
}

/* It would end, and its session with it. */
static void
test_an_older_runner_is_told_nothing(void **state)
{
	struct control_token heard;

	session.bearer = NULL;
	session.runner.version = 3;
	session_token_set(&session, session_token_copy(&had));
	assert_false(hear(&heard));
	assert_true(session_token_may_resume(&m, &session, &ours, &had));
	session_token_set(&session, NULL);
	assert_false(hear(&heard));
}

static void
test_what_a_runner_tells(void **state)
{
	struct control_token none = { .subject = "x" }, odd = had;
	struct buf b;

	session.bearer = NULL;
	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, RUNNER_EVENT_TOKEN, &had);
	assert_true(session_token_take(&session, b.data, b.len));
	assert_string_equal(session.bearer->subject, "alice");
	assert_false(session_token_take(&session, b.data, b.len - 1));
	buf_clear(&b);
	control_put(&b, RUNNER_EVENT_TOKEN, &none);
	assert_true(session_token_take(&session, b.data, b.len));
	assert_null(session.bearer);
	buf_clear(&b);
	odd.since_s = UINT64_C(1) << 63;
	control_put(&b, RUNNER_EVENT_TOKEN, &odd);
	assert_false(session_token_take(&session, b.data, b.len));
	buf_clear(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    test_whose_it_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    test_when_it_expired, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    test_the_state_of_its_session, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    test_a_runner_that_has_not_answered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    test_what_the_runner_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    test_an_older_runner_is_told_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    test_what_a_runner_tells, set_up, tear_down),
	};

	watch_init(true);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
