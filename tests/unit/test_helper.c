/* SPDX-License-Identifier: ISC */
/*
 * helper: which verdicts the broker believes. A front-end that was taken over
 * has every verdict that it ever carried.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "broker_main.h"
#include "broker_options.h"
#include "broker_state.h"
#include "cert_verdict.h"
#include "conf.h"
#include "frontend_child.h"
#include "identity.h"
#include "session_registry.h"
#include "util.h"

#define DEADLINE_MS 10000
#define LISTENER    3

static struct helpers the_helpers;
static struct conf conf = { .limits.frontend.pre_auth_deadline_ms =
				DEADLINE_MS };
static struct broker m = { .conf = &conf };
static struct helper_process keys = { .kind = TLS_HELPER_KEYS, .pid = 1 };
static struct helper_process old = { .kind = TLS_HELPER_CERTIFICATES,
	.pid = 2 };
static struct helper_process current = { .kind = TLS_HELPER_CERTIFICATES,
	.pid = 3 };

static int
setup(void **state)
{
	m.on = &broker_events;
	m.helpers = &the_helpers;
	helpers_init(m.helpers);
	memset(keys.secret, 'k', sizeof(keys.secret));
	memset(old.secret, 'o', sizeof(old.secret));
	memset(current.secret, 'c', sizeof(current.secret));
	old.replaced_ms = now_ms();
	TAILQ_INSERT_TAIL(&m.helpers->all, &keys, link);
	TAILQ_INSERT_TAIL(&m.helpers->all, &old, link);
	TAILQ_INSERT_TAIL(&m.helpers->all, &current, link);
	return 0;
}

/* Made so long ago, by that process. */
static struct control_cert_verdict
made(int64_t ms_ago, const struct helper_process *by)
{
	struct control_cert_verdict v = { .listener = LISTENER,
		.made_ms = (uint64_t)(now_ms() - ms_ago),
		.subject = "CN=bob" };

	cert_verdict_seal(&v, by->secret);
	return v;
}

static bool
is_believed(struct control_cert_verdict v, uint32_t listener)
{
	return helpers_vouch(&m, listener, &v);
}

static void
test_one_that_is_good(void **state)
{
	assert_true(is_believed(made(0, &current), LISTENER));
	assert_true(is_believed(made(DEADLINE_MS, &current), LISTENER));
}

static void
test_another_listener(void **state)
{
	assert_false(is_believed(made(0, &current), LISTENER + 1));
}

static void
test_one_that_was_kept(void **state)
{
	struct control_cert_verdict v = made(DEADLINE_MS * 2, &current);

	assert_false(is_believed(v, LISTENER));
	/* Its date is sealed, too. */
	v.made_ms = (uint64_t)now_ms();
	assert_false(is_believed(v, LISTENER));
}

static void
test_one_from_the_future(void **state)
{
	struct control_cert_verdict v = made(-60000, &current);

	assert_false(is_believed(v, LISTENER));
	v.made_ms = UINT64_MAX;
	cert_verdict_seal(&v, current.secret);
	assert_false(is_believed(v, LISTENER));
}

/* The secrets of key processes seal nothing. */
static void
test_another_secret(void **state)
{
	struct helper_process gone = { .secret = "of one that died" };

	assert_false(is_believed(made(0, &keys), LISTENER));
	assert_false(is_believed(made(0, &gone), LISTENER));
}

/* A handshake under the lists before a reload may come to its end, but not
 * begin for ever. */
static void
test_one_of_before_a_reload(void **state)
{
	assert_true(is_believed(made(0, &old), LISTENER));
	old.replaced_ms = now_ms() - 2 * DEADLINE_MS;
	assert_false(is_believed(made(0, &old), LISTENER));
	assert_true(is_believed(made(0, &current), LISTENER));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_one_that_is_good, setup),
		cmocka_unit_test_setup(test_another_listener, setup),
		cmocka_unit_test_setup(test_one_that_was_kept, setup),
		cmocka_unit_test_setup(test_one_from_the_future, setup),
		cmocka_unit_test_setup(test_another_secret, setup),
		cmocka_unit_test_setup(test_one_of_before_a_reload, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
