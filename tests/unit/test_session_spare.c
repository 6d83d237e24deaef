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
static struct broker m;

static int
set_up(void **state)
{
	char name[16];

	m = (struct broker){ .conf = &conf };
	m.on = &broker_events;
	m.sessions = &the_sessions;
	registry_init(m.sessions);
	for (size_t i = 0; i < IDENTITIES; i++) {
		snprintf(name, sizeof(name), "i%zu", i);
		all[i] = identity_new(name);
	}
	return 0;
}

static int
tear_down(void **state)
{
	session_spare_drop_all(&m);
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
		if (m.sessions->spares[i].identity == id)
			return &m.sessions->spares[i];
	return NULL;
}

/* As session_spare_make() would, but for the process. */
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

static void
test_its_time(void **state)
{
	int64_t now = now_ms();
	struct spare *slot;

	assert_int_equal(session_spare_expire(&m, now), -1);
	session_spare_want(&m, all[0]);
	assert_int_equal(session_spare_expire(&m, now), now);
	slot = make(all[0]);
	assert_int_equal(session_spare_expire(&m, now), slot->until_ms);
	assert_true(slot->until_ms > now);
	session_spare_want(&m, all[0]);
	assert_false(slot->wanted);
	assert_int_equal(
	    session_spare_expire(&m, slot->until_ms - 1), slot->until_ms);
	assert_int_equal(all[0]->refs, 2);
	assert_int_equal(session_spare_expire(&m, slot->until_ms), -1);
	assert_int_equal(all[0]->refs, 1);
	assert_null(slot_of(all[0]));
}

static void
test_who_has_none(void **state)
{
	struct identity *former = identity_new("former");

	session_spare_want(&m, former);
	m.draining = true;
	session_spare_want(&m, all[0]);
	m.draining = false;
	m.stdio = true;
	session_spare_want(&m, all[0]);
	m.stdio = false;
	assert_int_equal(session_spare_expire(&m, now_ms()), -1);
	identity_unref(former);
}

static void
test_the_longest_unused_gives_way(void **state)
{
	for (size_t i = 0; i < SESSION_SPARES_MAX; i++) {
		session_spare_want(&m, all[i]);
		make(all[i])->until_ms = (int64_t)(100 + i);
	}
	slot_of(all[0])->until_ms = 1000;
	session_spare_want(&m, all[SESSION_SPARES_MAX]);
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

	return cmocka_run_group_tests(tests, NULL, NULL);
}
