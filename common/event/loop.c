/* SPDX-License-Identifier: ISC */
/*
 * Errors of the event loop. Because libevent collects its changes in a list, it
 * may learn only after event_add() has returned that the kernel does not watch
 * a descriptor. It reports this by a warning.
 */
#include "loop.h"

#include <errno.h>
#include <event2/event.h>

#include "log.h"
#include "util.h"

static void
on_message(int severity, const char *text)
{
	/* EPERM: a regular file, which needs no watching (epoll_ctl(2)). */
	if (severity >= EVENT_LOG_WARN && errno != EPERM)
		log_fatal("event loop: %s", text);
}

void
loop_trust(void)
{
	event_set_log_callback(on_message);
}

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
