/* SPDX-License-Identifier: ISC */
/*
 * When detached sessions end: each not before its time, and of many only a few
 * in one moment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker_main.h"
#include "broker_options.h"
#include "broker_state.h"
#include "conf.h"
#include "frontend_child.h"
#include "identity.h"
#include "session_registry.h"
#include "util.h"

#define MANY 20
#define REST 20 /* ms */

static struct registry the_sessions;
static struct session sessions[MANY];
static struct identity identity = { .name = (char *)(uintptr_t) "x" };
static struct conf conf;
static struct broker m;

/* Whose runners have hung up, so that nobody is told anything. */
static int
set_up(void **state)
{
	m = (struct broker){ .conf = &conf };
	m.on = &broker_events;
	m.sessions = &the_sessions;
	registry_init(m.sessions);
	for (size_t i = 0; i < MANY; i++) {
		sessions[i] = (struct session){ .id = "x",
			.identity = &identity,
			.state = SESSION_STATE_DETACHED,
			.runner = { .hung_up = true } };
		TAILQ_INSERT_TAIL(&m.sessions->detached, &sessions[i], link);
	}
	return 0;
}

static size_t
ending(void)
{
	size_t n = 0;

	for (size_t i = 0; i < MANY; i++)
		n += sessions[i].state == SESSION_STATE_TERMINATING;
	return n;
}

static void
test_a_few_at_a_time(void **state)
{
	int64_t now = 1000;

	for (size_t i = 0; i < MANY; i++)
		sessions[i].detached_ms = 900;
	assert_int_equal(session_limit_detached(&m, now), now + REST);
	assert_int_equal(ending(), 8);
	assert_int_equal(session_limit_detached(&m, now + 1), now + REST);
	assert_int_equal(ending(), 8);
	now += REST;
	assert_int_equal(session_limit_detached(&m, now), now + REST);
	assert_int_equal(ending(), 16);
	now += 10 * REST;
	assert_int_equal(session_limit_detached(&m, now), -1);
	assert_int_equal(ending(), MANY);
}

static void
test_none_early(void **state)
{
	for (size_t i = 0; i < MANY; i++)
		sessions[i].detached_ms = 1000 + 10 * (int64_t)i;
	assert_int_equal(session_limit_detached(&m, 999), 1000);
	assert_int_equal(ending(), 0);
	assert_int_equal(session_limit_detached(&m, 1025), 1030);
	assert_int_equal(ending(), 3);
	assert_int_equal(session_limit_detached(&m, 1030), 1040);
	assert_int_equal(ending(), 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_few_at_a_time, set_up),
		cmocka_unit_test_setup(test_none_early, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
