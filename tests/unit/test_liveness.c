/* SPDX-License-Identifier: ISC */
/*
 * liveness: what is a sign of life of which kind of connection, and when it is
 * looked for. The time is made up, but for the age of an acknowledgement.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "liveness.h"
#include "util.h"

#define INTERVAL_MS 15000
#define DEADLINE_MS 20000

struct world {
	struct liveness life;
	struct liveness_now now;
	int ours, theirs;
};

static void
begin(struct world *w, bool proxied, int ours, int theirs)
{
	*w = (struct world){ .ours = ours,
		.theirs = theirs,
		.now = { .ms = now_ms(),
		    .fd = ours,
		    .reading = true,
		    .interval_ms = INTERVAL_MS,
		    .deadline_ms = DEADLINE_MS } };
	liveness_begin(&w->life, proxied, w->now.ms, INTERVAL_MS);
}

static void
begin_unix(struct world *w)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	begin(w, false, pair[0], pair[1]);
}

static void
begin_tcp(struct world *w, bool proxied)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int theirs = socket(AF_INET, SOCK_STREAM, 0), ours;

	assert_int_equal(bind(listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	getsockname(listener, (struct sockaddr *)&at, &len);
	assert_int_equal(connect(theirs, (struct sockaddr *)&at, len), 0);
	ours = accept(listener, NULL, NULL);
	assert_true(ours >= 0);
	close(listener);
	begin(w, proxied, ours, theirs);
}

static void
end(struct world *w)
{
	close(w->ours);
	close(w->theirs);
}

/* Asks by two bytes, as a ping has them. */
static void
probe(struct world *w)
{
	assert_true(liveness_ask(&w->life.probe, &w->now, true, false));
	assert_int_equal(write(w->ours, "\x89", 2), 2);
}

static enum liveness_result
later(struct world *w, int64_t ms)
{
	w->now.ms += ms;
	return liveness_look(&w->life, &w->now);
}

/* Fills the socket, whose other end does not read. */
static void
fill(struct world *w)
{
	static char data[65536];

	fcntl(w->ours, F_SETFL, O_NONBLOCK);
	while (write(w->ours, data, sizeof(data)) > 0)
		continue;
}

static void
test_only_bytes_count_without_tcp(void **state)
{
	struct world w;

	begin_unix(&w);
	probe(&w);
	assert_int_equal(later(&w, PROBE_MS - 1), LIVENESS_OPEN);
	assert_int_equal(later(&w, 1), LIVENESS_PROBED_OVER);
	assert_int_equal(read(w.theirs, &(char[2]){ 0 }, 2), 2);
	probe(&w);
	assert_int_equal(write(w.theirs, "x", 1), 1); /* not read yet */
	assert_int_equal(later(&w, 50), LIVENESS_PROBED);
	assert_int_equal(read(w.ours, &(char){ 0 }, 1), 1);
	assert_int_equal(read(w.theirs, &(char[2]){ 0 }, 2), 2);
	probe(&w);
	liveness_heard(&w.life);
	assert_int_equal(later(&w, 50), LIVENESS_PROBED);
	end(&w);
}

static void
test_a_ping_behind_something_proves_nothing(void **state)
{
	struct world w;

	begin_unix(&w);
	fill(&w);
	assert_true(liveness_ask(&w.life.probe, &w.now, false, true));
	assert_int_equal(later(&w, PROBE_MS), LIVENESS_PROBED);
	end(&w);
}

static void
test_nothing_asks(void **state)
{
	struct world w;

	begin_unix(&w);
	assert_false(liveness_ask(&w.life.probe, &w.now, false, false));
	end(&w);
}

/* The other end does nothing: its kernel does. */
static void
test_an_acknowledgement_is_a_sign(void **state)
{
	struct world w;

	begin_tcp(&w, false);
	probe(&w);
	assert_int_equal(later(&w, PROBE_MS), LIVENESS_PROBED);
	fill(&w);
	assert_true(liveness_ask(&w.life.probe, &w.now, false, true));
	while (liveness_look(&w.life, &w.now) == LIVENESS_OPEN)
		continue; /* until all is sent that its window permits */
	end(&w);
}

static void
test_that_of_a_proxy_is_none(void **state)
{
	struct world w;

	begin_tcp(&w, true);
	probe(&w);
	assert_int_equal(later(&w, PROBE_MS - 1), LIVENESS_OPEN);
	assert_int_equal(later(&w, 1), LIVENESS_PROBED_OVER);
	probe(&w);
	assert_int_equal(write(w.theirs, "x", 1), 1);
	assert_int_equal(later(&w, PROBE_MS), LIVENESS_PROBED);
	end(&w);
}

/* Who wants the session gets it; the deadline of pings cuts nobody. */
static void
test_a_proxy_that_takes_nothing(void **state)
{
	enum liveness_result r = LIVENESS_OPEN;
	struct world w;
	int tries = 0;

	begin_tcp(&w, true);
	fill(&w);
	while (r != LIVENESS_PROBED_OVER) {
		if (w.life.probe.asked_ms == 0)
			tries++;
		assert_true(liveness_ask(&w.life.probe, &w.now, false, true));
		r = later(&w, 50);
	}
	assert_true(tries > 1);
	w.now.ms += INTERVAL_MS;
	for (int i = 0; i < 10; i++) {
		liveness_ask(&w.life.ping, &w.now, false, true);
		r = later(&w, DEADLINE_MS);
		assert_true(r == LIVENESS_PING || r == LIVENESS_OPEN);
	}
	end(&w);
}

static void
test_pings_and_their_deadline(void **state)
{
	struct world w;

	begin_unix(&w);
	assert_int_equal(
	    liveness_next(&w.life, &w.now), w.now.ms + INTERVAL_MS);
	assert_int_equal(later(&w, INTERVAL_MS - 1), LIVENESS_OPEN);
	assert_int_equal(later(&w, 1), LIVENESS_PING);
	assert_true(liveness_ask(&w.life.ping, &w.now, true, false));
	assert_int_equal(later(&w, INTERVAL_MS), LIVENESS_PING);
	/* The question is as old as the first ping without an answer. */
	assert_true(liveness_ask(&w.life.ping, &w.now, true, false));
	assert_int_equal(liveness_next(&w.life, &w.now),
	    w.now.ms + DEADLINE_MS - INTERVAL_MS);
	assert_int_equal(
	    later(&w, DEADLINE_MS - INTERVAL_MS - 1), LIVENESS_OPEN);
	assert_int_equal(later(&w, 1), LIVENESS_OVER);
	liveness_heard(&w.life);
	assert_int_equal(later(&w, 1), LIVENESS_OPEN);
	end(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_bytes_count_without_tcp),
		cmocka_unit_test(test_a_ping_behind_something_proves_nothing),
		cmocka_unit_test(test_nothing_asks),
		cmocka_unit_test(test_an_acknowledgement_is_a_sign),
		cmocka_unit_test(test_that_of_a_proxy_is_none),
		cmocka_unit_test(test_a_proxy_that_takes_nothing),
		cmocka_unit_test(test_pings_and_their_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
