/* SPDX-License-Identifier: ISC */
/*
 * Which identities have a spare runner, and until when.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "broker_main.h"
#include "broker_options.h"
#include "broker_state.h"
#include "conf.h"
#include "frontend_child.h"
#include "identity.h"
#include "session_registry.h"
#include "util.h"

#define IDENTITIES (SESSION_SPARES_MAX + 1)

static struct registry the_sessions;
static struct identity *all[IDENTITIES];
static struct conf conf = { .identities = all, .nidentities = IDENTITIES };

static int
set_up(void **state)
{
	char name[16];

	broker.conf = &conf;
	broker.on = &broker_events;
	broker.sessions = &the_sessions;
	for (size_t i = 0; i < IDENTITIES; i++) {
		snprintf(name, sizeof(name), "i%zu", i);
		all[i] = identity_new(name);
	}
	return 0;
}

static int
tear_down(void **state)
{
	session_spare_drop_all(&broker);
	for (size_t i = 0; i < IDENTITIES; i++) {
		assert_int_equal(all[i]->refs, 1);
		identity_unref(all[i]);
	}
	return 0;
}

static struct spare *
slot_of(const struct identity *id)
{
	for (size_t i = 0; i < SESSION_SPARES_MAX; i++)
		if (broker.sessions->spares[i].identity == id)
			return &broker.sessions->spares[i];
	return NULL;
}

/* An idle loop does the same, and starts a process, too. */
static struct spare *
make(struct identity *id)
{
	struct spare *slot = slot_of(id);

	assert_non_null(slot);
	assert_true(slot->wanted);
	slot->wanted = false;
	slot->session = session_new(id);
	return slot;
}

/* As the loop does when its time has come. */
static void
fire(struct event *e)
{
	assert_true(event_pending(e, EV_TIMEOUT, NULL));
	event_get_callback(e)(-1, EV_TIMEOUT, event_get_callback_arg(e));
}

static void
test_its_time(void **state)
{
	int64_t now = now_ms();
	struct spare *slot;

	session_spare_want(&broker, all[0]);
	slot = make(all[0]);
	assert_true(slot->until_ms > now);
	session_spare_want(&broker, all[0]);
	assert_false(slot->wanted);
	assert_int_equal(all[0]->refs, 2);
	fire(&slot->timer);
	assert_int_equal(all[0]->refs, 1);
	assert_null(slot_of(all[0]));
}

static void
test_who_has_none(void **state)
{
	struct identity *former = identity_new("former");

	session_spare_want(&broker, former);
	broker.draining = true;
	session_spare_want(&broker, all[0]);
	broker.draining = false;
	broker.stdio = true;
	session_spare_want(&broker, all[0]);
	broker.stdio = false;
	assert_null(slot_of(former));
	assert_null(slot_of(all[0]));
	identity_unref(former);
}

static void
test_the_longest_unused_gives_way(void **state)
{
	for (size_t i = 0; i < SESSION_SPARES_MAX; i++) {
		session_spare_want(&broker, all[i]);
		make(all[i])->until_ms = (int64_t)(100 + i);
	}
	slot_of(all[0])->until_ms = 1000;
	session_spare_want(&broker, all[SESSION_SPARES_MAX]);
	assert_null(slot_of(all[1]));
	assert_int_equal(all[1]->refs, 1);
	assert_non_null(slot_of(all[0]));
	assert_non_null(slot_of(all[SESSION_SPARES_MAX]));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    test_its_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    test_who_has_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    test_the_longest_unused_gives_way, set_up, tear_down),
	};

	watch_init(true);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
