/* SPDX-License-Identifier: ISC */
/*
 * When detached sessions end: each not before its time, and of many only a few
 * in one moment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "broker_main.h"
#include "broker_options.h"
#include "broker_state.h"
#include "conf.h"
#include "frontend_child.h"
#include "identity.h"
#include "session_registry.h"
#include "util.h"

#define MANY  20
#define TTL   5000 /* ms */
#define APART 3

static struct registry the_sessions;
static struct session sessions[MANY];
static struct identity identity = { .name = (char *)(uintptr_t) "x" };
static struct conf conf = { .limits.detached_ttl_ms = TTL };
static int64_t begun;

/* Whose runners have hung up, so that nobody is told anything. */
static int
set_up(void **state)
{
	broker.conf = &conf;
	broker.on = &broker_events;
	broker.sessions = &the_sessions;
	the_sessions = (struct registry){ 0 };
	begun = now_ms();
	for (size_t i = 0; i < MANY; i++)
		sessions[i] = (struct session){ .id = "x",
			.identity = &identity,
			.state = SESSION_STATE_DETACHED,
			.detached_ms = begun,
			.runner = { .hung_up = true } };
	return 0;
}

static int
tear_down(void **state)
{
	for (size_t i = 0; i < MANY; i++)
		watch_end(&sessions[i].timer);
	return 0;
}

/* As the loop does when its time has come. */
static void
fire(struct event *e)
{
	assert_true(event_pending(e, EV_TIMEOUT, NULL));
	event_get_callback(e)(-1, EV_TIMEOUT, event_get_callback_arg(e));
}

static void
test_one_after_the_other(void **state)
{
	for (size_t i = 0; i < MANY; i++) {
		session_limit_detached(&broker, &sessions[i]);
		assert_int_equal(
		    sessions[i].until_ms, begun + TTL + APART * (int64_t)i);
	}
	fire(&sessions[1].timer);
	assert_int_equal(sessions[1].state, SESSION_STATE_TERMINATING);
	assert_int_equal(sessions[0].state, SESSION_STATE_DETACHED);
	/* Whoever comes later waits for nobody. */
	sessions[0].detached_ms = begun + 1000;
	session_limit_detached(&broker, &sessions[0]);
	assert_int_equal(sessions[0].until_ms, begun + 1000 + TTL);
}

static void
test_kept_ones_have_their_own_time(void **state)
{
	session_limit_detached(&broker, &sessions[0]);
	sessions[1].keep = (struct keep){ .max_ms = 9000, .ms = 7000 };
	session_limit_detached(&broker, &sessions[1]);
	assert_int_equal(sessions[1].until_ms, begun + 7000);
	session_limit_detached(&broker, &sessions[2]);
	assert_int_equal(sessions[2].until_ms, begun + TTL + APART);
	fire(&sessions[1].timer);
	assert_int_equal(sessions[1].state, SESSION_STATE_TERMINATING);
	assert_non_null(sessions[1].end_reason);
	free(sessions[1].end_reason);
}

static void
test_a_deadline(void **state)
{
	identity.limits.session_deadline_ms = 4000;
	session_limit_time(&sessions[0], begun);
	assert_int_equal(sessions[0].ends_ms, begun + 4000);
	fire(&sessions[0].end_timer);
	assert_int_equal(sessions[0].state, SESSION_STATE_TERMINATING);
	watch_end(&sessions[0].end_timer);
	free(sessions[0].end_reason);
}

int
main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_one_after_the_other),
		TEST(test_kept_ones_have_their_own_time),
		TEST(test_a_deadline),
	};

	watch_init(true);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
