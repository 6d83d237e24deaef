/* SPDX-License-Identifier: ISC */
/*
 * Errors of the event loop. Because libevent collects its changes in a list, it
 * may learn only after event_add() has returned that the kernel does not watch
 * a descriptor. It reports this by a warning.
 */
#include "loop.h"

#include <event2/event.h>
#include <sys/eventfd.h>

#define POLL_STEP 64
#define POLL_MS	  1000

/*
 * Set for good when the user had no watch left. The event is not lost: libevent
 * keeps it, and tries again.
 */
static bool crowded;
static int wake_fd = -1; /* ends a turn that waits already */

static void
on_message(int severity, const char *text)
{
	/* EPERM: a regular file, which needs no watching (epoll_ctl(2)). */
	if (severity < EVENT_LOG_WARN || errno == EPERM)
		return;
	if (errno != ENOSPC || wake_fd < 0)
		log_fatal("event loop: %s", text);
	if (crowded)
		return;
	crowded = true;
	log_warn(0, "event loop: this user watches as much with epoll as "
		    "fs.epoll.max_user_watches permits; going on with poll");
	if (eventfd_write(wake_fd, 1) < 0)
		log_fatal_errno(-errno, "event loop");
}

void
loop_trust(void)
{
	event_set_log_callback(on_message);
}

/* --- one turn ----------------------------------------------------------- */

static void
woken_cb(evutil_socket_t fd, short what, void *arg)
{
}

static struct event_base *
make(int flags, const char *avoided)
{
	struct event_config *c = event_config_new();
	struct event_base *base = NULL;

	if (c != NULL &&
	    event_config_set_flag(c, flags | EVENT_BASE_FLAG_NOLOCK |
					 EVENT_BASE_FLAG_IGNORE_ENV) == 0 &&
	    (avoided == NULL || event_config_avoid_method(c, avoided) == 0))
		base = event_base_new_with_config(c);
	if (base == NULL)
		log_fatal("the event loop cannot be set up");
	event_config_free(c);
	return base;
}

struct event_base *
loop_new_direct(bool alone)
{
	return make(0, alone ? NULL : "epoll");
}

/* Without the list of changes event_add() fails for an event that is not
 * watched, and forgets it. */
struct event_base *
loop_new(void)
{
	struct event_base *base =
	    make(EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST, NULL);

	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake_fd < 0)
		log_fatal("the event loop cannot be set up");
	loop_trust();
	if (event_base_once(base, wake_fd, EV_READ, woken_cb, NULL, NULL) < 0)
		log_fatal("event loop: out of memory");
	/* Now it is known whether there is a watch for it. */
	event_base_loop(base, EVLOOP_NONBLOCK);
	return base;
}

/* What a turn with poll(2) waits for. The arrays are kept for the next. */
static struct {
	struct pollfd *fds;
	struct event **events;
	size_t n, cap;
	struct timeval end;
	bool timed;
} waiting;

static bool
is_before(const struct timeval *a, const struct timeval *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec
				      : a->tv_usec < b->tv_usec;
}

static int
collect(const struct event_base *base, const struct event *ev, void *arg)
{
	struct timeval at;
	int what = event_pending(ev, EV_READ | EV_WRITE | EV_TIMEOUT, &at);

	if (what & EV_TIMEOUT &&
	    (!waiting.timed || is_before(&at, &waiting.end))) {
		waiting.timed = true;
		waiting.end = at;
	}
	if (!(what & (EV_READ | EV_WRITE)) || event_get_fd(ev) < 0)
		return 0;
	if (waiting.n == waiting.cap) {
		waiting.cap += POLL_STEP;
		waiting.fds = xreallocarray(
		    waiting.fds, waiting.cap, sizeof(*waiting.fds));
		waiting.events = xreallocarray(
		    waiting.events, waiting.cap, sizeof(*waiting.events));
	}
	waiting.fds[waiting.n] = (struct pollfd){ .fd = event_get_fd(ev),
		.events = (short)((what & EV_READ ? POLLIN : 0) |
				  (what & EV_WRITE ? POLLOUT : 0)) };
	/* libevent gives out as const what is the caller's own. */
	waiting.events[waiting.n++] = (struct event *)ev;
	return 0;
}

/* The time of day may change meanwhile, so that no wait is long. */
static int
time_left(struct event_base *base)
{
	struct timeval now, left;

	if (event_base_get_num_events(base, EVENT_BASE_COUNT_ACTIVE) > 0)
		return 0;
	if (!waiting.timed || gettimeofday(&now, NULL) < 0)
		return POLL_MS;
	if (!is_before(&now, &waiting.end))
		return 0;
	timersub(&waiting.end, &now, &left);
	return left.tv_sec > 0 ? POLL_MS : (int)(left.tv_usec / 1000 + 1);
}

static void
poll_turn(struct event_base *base)
{
	const short always = POLLHUP | POLLERR | POLLNVAL;

	waiting.n = 0;
	waiting.timed = false;
	event_base_foreach_event(base, collect, NULL);
	if (poll(waiting.fds, waiting.n, time_left(base)) < 0 && errno != EINTR)
		log_fatal_errno(-errno, "event loop: poll");
	for (size_t i = 0; i < waiting.n; i++) {
		const struct pollfd *p = &waiting.fds[i];
		int what = (p->revents & (POLLIN | always) ? EV_READ : 0) |
			   (p->revents & (POLLOUT | always) ? EV_WRITE : 0);

		what &= event_get_events(waiting.events[i]);
		if (what != 0)
			event_active(waiting.events[i], what, 1);
	}
}

void
loop_turn(struct event_base *base)
{
	if (crowded)
		poll_turn(base);
	if (event_base_loop(
		base, EVLOOP_ONCE | (crowded ? EVLOOP_NONBLOCK : 0)) < 0)
		log_fatal("event loop failed");
}

/* --- events ------------------------------------------------------------- */

void
loop_add(struct event *ev, const struct timeval *after)
{
	/* event_add() does not set errno when it has no memory. */
	errno = ENOMEM;
	if (event_add(ev, after) < 0 && errno != EPERM)
		log_fatal_errno(-errno, "event loop: cannot wait for an event");
}

void
loop_add_ms(struct event *ev, uint64_t ms)
{
	const struct timeval after = timeval_of_ms(ms);

	loop_add(ev, &after);
}

void
loop_watch(struct event *ev, bool *watching, bool wanted)
{
	if (*watching == wanted)
		return;
	*watching = wanted;
	if (wanted)
		loop_add(ev, NULL);
	else
		event_del(ev);
}

static struct event *log_timer;

static void
retry_log_later(void)
{
	static const struct timeval after = { 0, LOG_RETRY_MS * 1000 };

	loop_add(log_timer, &after);
}

static void
log_timer_cb(evutil_socket_t fd, short what, void *arg)
{
	if (!log_flush())
		retry_log_later();
}

void
loop_log(struct event_base *base)
{
	log_timer = evtimer_new(base, log_timer_cb, NULL);
	if (log_timer == NULL)
		log_fatal("event loop: out of memory");
	log_on_wait(retry_log_later);
}
