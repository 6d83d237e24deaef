/* SPDX-License-Identifier: ISC */
/*
 * The broker's loop. Channels of untrusted programs are closed here.
 */
#include "watch.h"

#include "dispose.h"
#include "loop.h"

/*
 * Channels of untrusted programs.
 */

/* An empty message looks like the end, but carries its sender's credentials. */
static bool
has_unread(int fd)
{
	struct msghdr msg = { .msg_controllen = 0 };
	const int on = 1;
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	n = recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT);
	return n > 0 || (n == 0 && msg.msg_flags & MSG_CTRUNC);
}

void
dispose_channel(int fd)
{
	if (fd < 0)
		return;
	/* Nothing more can arrive. */
	shutdown(fd, SHUT_RDWR);
	if (has_unread(fd))
		dispose(&fd, 1);
	else
		close(fd);
}

/* --- the loop ----------------------------------------------------------- */

enum { PRIORITY_IDLE = 2, PRIORITIES }; /* libevent's default is the middle */

static struct event_base *base;

/* Whoever waits for a descriptor is told why that is not possible. */
static void
be_silent(int severity, const char *text)
{
}

void
watch_init(bool alone)
{
	event_set_log_callback(be_silent);
	base = loop_new_direct(alone);
	if (event_base_priority_init(base, PRIORITIES) < 0)
		log_fatal("the event loop cannot be set up");
}

void
watch_turn(void)
{
	if (event_base_loop(base, EVLOOP_ONCE) < 0)
		log_fatal("event loop failed");
}

int
watch_add(
    struct event *e, int fd, short what, event_callback_fn ready, void *arg)
{
	errno = ENOMEM; /* which event_add() does not set */
	if (event_assign(e, base, fd, what | EV_PERSIST, ready, arg) < 0 ||
	    event_add(e, NULL) < 0) {
		int err = -errno;

		*e = (struct event){ 0 };
		return err;
	}
	return 0;
}

void
watch_change(struct event *e, short what)
{
	event_del(e);
	if (what == 0)
		return;
	event_assign(e, base, event_get_fd(e), what | EV_PERSIST,
	    event_get_callback(e), event_get_callback_arg(e));
	loop_add(e, NULL);
}

int
watch_fd(const struct event *e)
{
	return event_initialized(e) ? event_get_fd(e) : -1;
}

void
watch_time(struct event *e, int64_t ms, event_callback_fn due, void *arg)
{
	watch_end(e);
	event_assign(e, base, -1, 0, due, arg);
	loop_add_ms(e, ms > 0 ? (uint64_t)ms : 0);
}

int
watch_end(struct event *e)
{
	int fd = watch_fd(e);

	if (event_initialized(e))
		event_del(e);
	*e = (struct event){ 0 };
	return fd;
}

void
watch_close(struct event *e)
{
	int fd = watch_end(e);

	if (fd >= 0)
		close(fd);
}

static void
turn_cb(evutil_socket_t fd, short what, void *arg)
{
}

void
watch_turn_at(int64_t at_ms)
{
	static struct event turn;
	static int64_t next_ms;

	if (at_ms < 0 ||
	    (event_initialized(&turn) &&
		event_pending(&turn, EV_TIMEOUT, NULL) && next_ms <= at_ms))
		return;
	next_ms = at_ms;
	watch_time(&turn, at_ms - now_ms(), turn_cb, NULL);
}

void
watch_idle(event_callback_fn idle)
{
	static struct event e;

	if (!event_initialized(&e)) {
		event_assign(&e, base, -1, 0, idle, NULL);
		event_priority_set(&e, PRIORITY_IDLE);
	}
	event_active(&e, EV_TIMEOUT, 0);
}
