/* SPDX-License-Identifier: ISC */
/*
 * Detects that a client has hung up. libevent does not report a reset without
 * reading, so this file has an epoll(7) instance of its own, which libevent
 * watches.
 */
#include "hangup.h"

#include <errno.h>
#include <event2/event.h>
#include <sys/epoll.h>

#include "frontend.h"
#include "handoff.h"
#include "log.h"
#include "loop.h"
#include "util.h"

#define EVENTS_PER_WAKE 64

static int epoll_fd = -1;

static void
epoll_cb(evutil_socket_t fd, short what, void *arg)
{
	struct epoll_event events[EVENTS_PER_WAKE];
	int n = epoll_wait(fd, events, EVENTS_PER_WAKE, 0);

	for (int i = 0; i < n; i++) {
		struct connection *c = connection_find(events[i].data.u32);

		if (c != NULL)
			handoff_hung_up(c);
	}
}

void
hangup_init(void)
{
	static struct event event;

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		log_fatal_errno(-errno, "epoll");
	event_assign(
	    &event, base, epoll_fd, EV_READ | EV_PERSIST, epoll_cb, NULL);
	loop_add(&event, NULL);
}

int
hangup_watch(const struct connection *c)
{
	struct epoll_event e = { .events = EPOLLRDHUP | EPOLLET,
		.data.u32 = c->number };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->in_fd, &e) < 0 ? -errno
								    : 0;
}

void
hangup_forget(const struct connection *c)
{
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, c->in_fd, NULL);
}
