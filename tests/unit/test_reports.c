/* SPDX-License-Identifier: ISC */
/*
 * session, session_audit: the runner's door to the broker. Every known
 * message, with and without a descriptor, to a session in every state: it is
 * taken, or the runner is killed.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker_main.h"
#include "broker_options.h"
#include "broker_state.h"
#include "conf.h"
#include "frontend_child.h"
#include "identity.h"
#include "seqpacket.h"
#include "session_registry.h"
#include "spawn_client.h"
#include "util.h"

#define TYPES	   96
#define GENERATION 3
#define WATCHES	   2
#define RUNNER	   4711

struct fixture {
	struct session session;
	struct identity identity;
	struct conf conf;
	int runner; /* its end of the control channel */
};

/* Root's end of the spawn channel. */
static int root = -1;

static void
play_root(void)
{
	char number[16];
	int pair[2];

	if (root >= 0)
		return;
	assert_int_equal(seqpacket_pair(pair), 0);
	snprintf(number, sizeof(number), "%d", pair[0]);
	assert_int_equal(setenv("EXECD_SPAWN_CHANNEL", number, 1), 0);
	assert_true(spawn_find());
	root = pair[1];
}

/* A session whose runner root is asked to kill. */
static void
set_up(struct fixture *f, enum session_state state, bool audited)
{
	static char none[] = "none";
	int pair[2];

	*f = (struct fixture){ .identity = { .name = none, .user_name = none },
		.session = { .state = state,
		    .runner = { .audited = audited, .pid = RUNNER },
		    .attachment = { .generation = GENERATION },
		    .watchers = { .ever = WATCHES },
		    .id = "01234567-0000-4000-8000-000000000000" } };
	broker.conf = &f->conf;
	f->session.identity = &f->identity;
	TAILQ_INIT(&f->session.watchers.all);
	TAILQ_INIT(&f->session.commands.processes);
	assert_int_equal(seqpacket_pair(pair), 0);
	assert_int_equal(session_control_watch(&f->session, pair[0]), 0);
	f->runner = pair[1];
	play_root();
}

static void
forget_processes(struct fixture *f)
{
	struct running_process *p;

	while ((p = TAILQ_FIRST(&f->session.commands.processes)) != NULL) {
		TAILQ_REMOVE(&f->session.commands.processes, p, link);
		free(p);
	}
}

/* Was it killed? */
static bool
tear_down(struct fixture *f)
{
	struct {
		struct spawn_head head;
		struct control_pid killed;
		uint32_t more;
	} m;
	int fds[SEQPACKET_FDS_MAX];
	bool killed = false;
	size_t nfds;
	ssize_t n;

	while ((n = seqpacket_recv(root, &m, sizeof(m), fds, &nfds)) > 0) {
		assert_int_equal(nfds, 0);
		assert_int_equal(n, sizeof(m.head) + sizeof(m.killed));
		assert_int_equal(m.head.type, SPAWN_KILL);
		assert_int_equal(m.killed.pid, RUNNER);
		killed = true;
	}
	forget_processes(f);
	free(f->session.end_reason);
	close(f->runner);
	watch_close(&f->session.runner.control);
	return killed;
}

static void
send_with(struct fixture *f, const struct buf *b, int fd)
{
	assert_int_equal(
	    seqpacket_send(f->runner, b->data, b->len, &fd, fd >= 0), 0);
	session_take_reports(&f->session);
}

static void
send_report(struct fixture *f, const struct buf *b, bool with_fd)
{
	int fd = with_fd ? memfd_create("test", MFD_CLOEXEC) : -1;

	send_with(f, b, fd);
	if (fd >= 0)
		close(fd);
}

/* The message of that type with the values that are good for this session. */
static void
put_report(struct buf *b, uint32_t type)
{
	struct control_detached detached = { GENERATION, CHANNEL_END_PROTOCOL };
	struct control_unwatched unwatched = { WATCHES, CHANNEL_END_DETACHED };
	static struct control_started started;
	static struct control_exited exited;
	const struct {
		enum control_type type;
		const void *payload;
	} reports[] = {
		{ RUNNER_EVENT_DETACHED, &detached },
		{ RUNNER_EVENT_UNWATCHED, &unwatched },
		{ RUNNER_EVENT_STARTED, &started },
		{ RUNNER_EVENT_EXITED, &exited },
	};

	buf_init(b, CONTROL_MESSAGE_MAX);
	for (size_t i = 0; i < nitems(reports); i++)
		if (reports[i].type == type) {
			control_put(b, type, reports[i].payload);
			return;
		}
	buf_put_u32(b, type);
}

static bool
permitted(uint32_t type, bool audited, bool with_fd)
{
	switch (type) {
	case RUNNER_EVENT_DETACHED:
	case RUNNER_EVENT_UNWATCHED:
		return !with_fd;
	case RUNNER_EVENT_STARTED:
	case RUNNER_EVENT_EXITED:
		return audited && !with_fd;
	default:
		return false;
	}
}

static void
check_report(enum session_state state, uint32_t type, bool audited, bool fd)
{
	struct fixture f;
	struct buf b;

	set_up(&f, state, audited);
	put_report(&b, type);
	send_report(&f, &b, fd);
	buf_clear(&b);
	if (tear_down(&f) == permitted(type, audited, fd))
		fail_msg("message %u in state %d, audit %d, descriptor %d",
		    type, state, audited, fd);
	assert_int_equal(f.session.state, state);
	assert_int_equal(f.session.attachment.end == CHANNEL_END_PROTOCOL,
	    type == RUNNER_EVENT_DETACHED && !fd);
}

static void
test_every_message_in_every_state(void **state)
{
	for (uint32_t type = 0; type < TYPES; type++) {
		/* It ends the session, which is in no registry here. */
		if (type == RUNNER_EVENT_END)
			continue;
		for (unsigned bits = 0; bits < 4; bits++) {
			check_report(
			    SESSION_STATE_ATTACHED, type, bits & 1, bits & 2);
			check_report(
			    SESSION_STATE_DETACHED, type, bits & 1, bits & 2);
			check_report(SESSION_STATE_TERMINATING, type, bits & 1,
			    bits & 2);
		}
	}
}

/* What names something that never was. */
static void
test_impossible_values(void **state)
{
	const struct control_detached detached[] = {
		{ GENERATION + 1, CHANNEL_END_DETACHED },
		{ UINT32_MAX, CHANNEL_END_DETACHED },
		{ GENERATION, CHANNEL_END_RUNNER + 1 },
	};
	const struct control_unwatched unwatched[] = {
		{ WATCHES + 1, CHANNEL_END_DETACHED },
		{ 0, CHANNEL_END_DETACHED },
		{ WATCHES, CHANNEL_END_RUNNER + 1 },
	};

	for (size_t i = 0; i < nitems(detached) + nitems(unwatched); i++) {
		struct fixture f;
		struct buf b;

		set_up(&f, SESSION_STATE_ATTACHED, true);
		buf_init(&b, CONTROL_MESSAGE_MAX);
		if (i < nitems(detached))
			control_put(&b, RUNNER_EVENT_DETACHED, &detached[i]);
		else
			control_put(&b, RUNNER_EVENT_UNWATCHED,
			    &unwatched[i - nitems(detached)]);
		send_report(&f, &b, false);
		buf_clear(&b);
		assert_int_equal(
		    f.session.attachment.end, CHANNEL_END_DETACHED);
		assert_true(tear_down(&f));
	}
}

/* Only an adopted session can be kept without having asked this broker, and for
 * no longer than any operator could permit. */
static void
test_impossible_keeping(void **state)
{
	const struct {
		bool adopted;
		struct control_keep_state report;
	} rows[] = {
		{ false, { .ms = 1, .max_ms = 1 } },
		{ true, { .ms = 1, .max_ms = 0 } },
		{ true, { .ms = 1, .max_ms = CONTROL_KEEP_MAX_MS + 1 } },
		{ true, { .max_ms = 1, .since_ms = UINT64_MAX } },
		{ true, { .max_ms = 1, .detached_ms = UINT64_MAX } },
	};

	for (size_t i = 0; i < nitems(rows); i++) {
		struct fixture f;
		struct buf b;

		set_up(&f, SESSION_STATE_ATTACHED, false);
		f.session.runner.adopted = rows[i].adopted;
		buf_init(&b, CONTROL_MESSAGE_MAX);
		control_put(&b, RUNNER_EVENT_KEPT, &rows[i].report);
		send_report(&f, &b, false);
		buf_clear(&b);
		assert_false(session_is_kept(&f.session));
		assert_true(tear_down(&f));
	}
}

/* Behind the first impossible one nothing counts. */
static void
test_nothing_is_taken_from_the_condemned(void **state)
{
	struct fixture f;
	struct buf b;

	set_up(&f, SESSION_STATE_ATTACHED, true);
	buf_init(&b, CONTROL_MESSAGE_MAX);
	buf_put_u32(&b, 999);
	assert_int_equal(seqpacket_send(f.runner, b.data, b.len, NULL, 0), 0);
	buf_clear(&b);
	put_report(&b, RUNNER_EVENT_DETACHED);
	send_report(&f, &b, false);
	buf_clear(&b);
	assert_int_equal(f.session.attachment.end, CHANNEL_END_DETACHED);
	assert_true(f.session.runner.hung_up);
	assert_true(tear_down(&f));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_message_in_every_state),
		cmocka_unit_test(test_impossible_values),
		cmocka_unit_test(test_impossible_keeping),
		cmocka_unit_test(test_nothing_is_taken_from_the_condemned),
	};

	watch_init(true);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
