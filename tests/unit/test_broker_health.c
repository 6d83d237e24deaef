/* SPDX-License-Identifier: ISC */
/*
 * health: what is said of parts that do not answer, and that the watchdog is
 * fed only while all of them do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker_health.h"
#include "broker_main.h"
#include "broker_options.h"
#include "broker_state.h"
#include "conf.h"
#include "frontend_child.h"
#include "identity.h"
#include "session_registry.h"
#include "systemd.h"

#define NOW 100000

static struct frontend the_frontend;
static struct helpers the_helpers;
static struct broker m;

static int
set_up(void **state)
{
	the_frontend = (struct frontend){ .state = FRONTEND_SERVING };
	m = (struct broker){ .frontend = &the_frontend };
	m.on = &broker_events;
	m.helpers = &the_helpers;
	helpers_init(m.helpers);
	return 0;
}

static void
test_all_is_well(void **state)
{
	assert_null(broker_health_reason(&m, NOW));
	m.frontend->answer_ms = NOW + 1; /* it was asked */
	assert_null(broker_health_reason(&m, NOW));
}

static void
test_the_front_end(void **state)
{
	m.frontend->answer_ms = NOW;
	assert_string_equal(
	    broker_health_reason(&m, NOW), "the front-end does not answer");
	m.frontend->answer_ms = 0;
	m.frontend->state = FRONTEND_CONFINING;
	assert_string_equal(
	    broker_health_reason(&m, NOW), "the front-end is starting");
	m.frontend->state = FRONTEND_DOWN;
	assert_string_equal(
	    broker_health_reason(&m, NOW), "there is no front-end");
}

static void
test_helpers(void **state)
{
	struct helper_process p = { .killed = true, .replaced_ms = 1 };

	TAILQ_INSERT_TAIL(&m.helpers->all, &p, link);
	assert_null(broker_health_reason(&m, NOW)); /* another took its place */
	p.replaced_ms = 0;
	assert_non_null(broker_health_reason(&m, NOW));
	p.killed = false;
	assert_null(broker_health_reason(&m, NOW));
	m.helpers->restart_ms = NOW + 1;
	assert_non_null(broker_health_reason(&m, NOW));
}

/* No reason to start execd anew. */
static void
test_the_record(void **state)
{
	m.audit_stopped = true;
	assert_string_equal(
	    broker_health_reason(&m, NOW), "the audit log cannot be written");
	assert_null(broker_health_of_parts(&m, NOW));
}

static unsigned
count_fed(int fd)
{
	char text[64];
	unsigned n = 0;
	ssize_t len;

	while ((len = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT)) > 0) {
		text[len] = '\0';
		n += strcmp(text, "WATCHDOG=1") == 0;
	}
	return n;
}

static void
test_the_watchdog(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(
	    un.sun_path, sizeof(un.sun_path), "@execd-test-%d", (int)getpid());
	setenv("NOTIFY_SOCKET", un.sun_path, 1);
	setenv("WATCHDOG_USEC", "2000000", 1);
	un.sun_path[0] = '\0';
	assert_int_equal(
	    bind(fd, (const struct sockaddr *)&un,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			    strlen(un.sun_path + 1))),
	    0);
	notify_init();
	assert_int_equal(notify_alive(NOW, true), NOW + 1000);
	assert_int_equal(count_fed(fd), 1);
	assert_int_equal(notify_alive(NOW + 999, true), NOW + 1000);
	assert_int_equal(count_fed(fd), 0);
	/* It is looked at again soon, and not fed. */
	assert_true(notify_alive(NOW + 1000, false) <= NOW + 1500);
	assert_true(notify_alive(NOW + 60000, false) <= NOW + 60500);
	assert_int_equal(count_fed(fd), 0);
	assert_int_equal(notify_alive(NOW + 60500, true), NOW + 61500);
	assert_int_equal(count_fed(fd), 1);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_all_is_well, set_up),
		cmocka_unit_test_setup(test_the_front_end, set_up),
		cmocka_unit_test_setup(test_helpers, set_up),
		cmocka_unit_test_setup(test_the_record, set_up),
		cmocka_unit_test_setup(test_the_watchdog, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
