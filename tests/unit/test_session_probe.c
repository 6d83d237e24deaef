/* SPDX-License-Identifier: ISC */
/*
 * session_probe: who is asked for a sign of life, one question for a session at
 * a time, and that whoever cannot answer counts as alive.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker_state.h"
#include "frontend_child.h"
#include "seqpacket.h"
#include "session_registry.h"

#define CONN   5
#define WAITER 7

static struct frontend the_frontend;
static struct registry the_sessions;
static struct session session;
static int front, runner; /* the other ends of their channels */
static unsigned probed;

/* As requests_probed(), for which the session may be free now. */
static void
on_probed(struct broker *m, struct session *s)
{
	int fd = session_probe_take(s);

	assert_true(fd >= 0);
	close(fd);
	probed++;
}

static const struct broker_events on = { .session_probed = on_probed };

static void
ignore(evutil_socket_t fd, short what, void *arg)
{
}

static int
set_up(void **state)
{
	int pair[2];

	broker.on = &on;
	broker.frontend = &the_frontend;
	broker.sessions = &the_sessions;
	frontend_init(&the_frontend);
	assert_int_equal(seqpacket_pair(pair), 0);
	assert_int_equal(
	    watch_add(&the_frontend.control, pair[0], EV_READ, ignore, NULL),
	    0);
	the_frontend.state = FRONTEND_SERVING;
	front = pair[1];
	assert_int_equal(seqpacket_pair(pair), 0);
	session = (struct session){ .state = SESSION_STATE_ATTACHED,
		.attachment = { .conn = CONN },
		.runner = { .version = RUNNER_VERSION } };
	assert_int_equal(session_control_watch(&session, pair[0]), 0);
	runner = pair[1];
	probed = 0;
	return 0;
}

static int
tear_down(void **state)
{
	close(front);
	close(runner);
	watch_close(&the_frontend.control);
	watch_close(&session.runner.control);
	return 0;
}

static bool
begins(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	bool begun = session_probe(&broker, &session, WAITER, &fd);

	assert_int_equal(begun, fd < 0);
	if (fd >= 0)
		close(fd);
	return begun;
}

/* Returns false if nothing of that type was sent. */
static bool
was_sent(int channel, enum control_type type, void *payload)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n = seqpacket_recv(channel, packet, sizeof(packet), fds, &nfds);

	return n > 0 && nfds == 0 &&
	       control_get(packet, (size_t)n, type, payload) == 0;
}

static void
report(uint32_t number)
{
	const union runner_report r = { .probe = { .number = number } };

	assert_int_equal(session_probe_report(&session, &r), 0);
}

static void
test_the_front_end_is_asked_once(void **state)
{
	struct control_probe p;

	assert_true(begins());
	assert_true(was_sent(front, BROKER_EV_PROBE, &p));
	assert_int_equal(p.conn, CONN);
	assert_int_equal(p.number, session.probe.number);
	assert_false(begins());
	assert_false(was_sent(front, BROKER_EV_PROBE, &p));
	on_probed(&broker, &session);
	assert_true(begins());
	on_probed(&broker, &session);
}

static void
test_a_runner_that_has_the_client(void **state)
{
	struct control_runner_probe p;

	assert_true(begins());
	session_probe_runner(&broker, &session);
	assert_true(was_sent(runner, RUNNER_COMMAND_PROBE, &p));
	report(p.number - 1);
	report(0);
	assert_int_equal(probed, 0);
	report(p.number);
	assert_int_equal(probed, 1);
	report(p.number);
	assert_int_equal(probed, 1);
}

static void
test_a_runner_of_the_release_before(void **state)
{
	struct control_runner_probe p;

	session.runner.version = RUNNER_PROBES - 1;
	assert_true(begins());
	session_probe_runner(&broker, &session);
	assert_false(was_sent(runner, RUNNER_COMMAND_PROBE, &p));
	assert_int_equal(probed, 1);
}

/* As the loop does when its time has come. */
static void
fire(struct event *e)
{
	assert_true(event_pending(e, EV_TIMEOUT, NULL));
	event_get_callback(e)(-1, EV_TIMEOUT, event_get_callback_arg(e));
}

static void
test_nobody_answers(void **state)
{
	assert_true(begins());
	assert_int_equal(probed, 0);
	fire(&session.probe.timer);
	assert_int_equal(probed, 1);
	assert_false(event_initialized(&session.probe.timer));
}

static void
test_one_that_is_ending_is_not_asked(void **state)
{
	session.attachment.close_asked = true;
	assert_false(begins());
}

/* Takes what a runner says of its commands, which is refused if nobody asked.
 */
static int
tell(const struct control_commands *c)
{
	static union runner_report r;

	r.commands = *c;
	return session_commands_report(&session, &r);
}

static void
test_what_runs(void **state)
{
	static struct control_commands c = { .count = 1,
		.commands = { { .process = "p", .command = "c" } } };

	assert_int_equal(tell(&c), -EBADMSG);
	assert_true(session_ask_commands(&session));
	assert_true(was_sent(runner, RUNNER_COMMAND_COMMANDS, NULL));
	assert_true(session_ask_commands(&session));
	assert_false(was_sent(runner, RUNNER_COMMAND_COMMANDS, NULL));
	c.count = CONTROL_SHOWN_MAX + 1;
	assert_int_equal(tell(&c), -EBADMSG);
	c.count = 1;
	memset(c.commands[0].command, 'c', sizeof(c.commands[0].command));
	assert_int_equal(tell(&c), -EBADMSG);
	c.commands[0].command[1] = '\0';
	assert_int_equal(tell(&c), 0);
	assert_string_equal(session.commands.shown->commands[0].command, "c");
	assert_int_equal(tell(&c), -EBADMSG);
	/* The broker before may have asked. */
	session.runner.adopted = true;
	assert_int_equal(tell(&c), 0);
	session.runner.version = RUNNER_LIMITS - 1;
	assert_false(session_ask_commands(&session));
	free(session.commands.shown);
}

int
main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_the_front_end_is_asked_once),
		TEST(test_a_runner_that_has_the_client),
		TEST(test_a_runner_of_the_release_before),
		TEST(test_nobody_answers),
		TEST(test_one_that_is_ending_is_not_asked),
		TEST(test_what_runs),
	};

	watch_init(true);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
