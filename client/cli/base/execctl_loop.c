/* SPDX-License-Identifier: ISC */
/*
 * The event loop of execctl: the client, a few descriptors and a few timers.
 */
#include <errno.h>
#include <poll.h>

#include "execctl.h"

#define SOURCES_MAX 96 /* forward.c has up to 72 */

void
source_set(struct execctl *ctl, struct source *s, int fd, short events)
{
	s->fd = fd;
	s->events = events;
	if (s->added)
		return;
	s->added = true;
	TAILQ_INSERT_TAIL(&ctl->sources, s, link);
}

void
source_remove(struct execctl *ctl, struct source *s)
{
	if (!s->added)
		return;
	s->added = false;
	TAILQ_REMOVE(&ctl->sources, s, link);
}

void
timer_set(struct execctl *ctl, struct timer *t, int64_t after_ms)
{
	t->at_ms = now_ms() + after_ms;
	if (t->added)
		return;
	t->added = true;
	TAILQ_INSERT_TAIL(&ctl->timers, t, link);
}

void
timer_remove(struct execctl *ctl, struct timer *t)
{
	if (!t->added)
		return;
	t->added = false;
	TAILQ_REMOVE(&ctl->timers, t, link);
}

static int
next_timer(const struct execctl *ctl)
{
	const struct timer *t;
	int64_t next = INT64_MAX, now = now_ms();

	TAILQ_FOREACH (t, &ctl->timers, link)
		if (t->at_ms < next)
			next = t->at_ms;
	if (next == INT64_MAX)
		return -1;
	if (next <= now)
		return 0;
	return next - now > 60000 ? 60000 : (int)(next - now);
}

static void
fire_timers(struct execctl *ctl)
{
	struct timer *t, *next;
	int64_t now = now_ms();

	TAILQ_FOREACH_SAFE (t, &ctl->timers, link, next) {
		if (t->at_ms > now)
			continue;
		timer_remove(ctl, t);
		t->fire(t->arg);
		return; /* the callback may have removed `next` */
	}
}

static struct source *
find_source(struct execctl *ctl, int fd)
{
	struct source *s;

	TAILQ_FOREACH (s, &ctl->sources, link)
		if (s->fd == fd && s->events != 0)
			return s;
	return NULL;
}

/* Finds sources by descriptor: a callback may have removed one since
 * poll(2). */
static void
hand_out(struct execctl *ctl, const struct pollfd *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct source *s =
		    fds[i].revents ? find_source(ctl, fds[i].fd) : NULL;

		if (s != NULL)
			s->ready(s->arg);
	}
}

int
loop_once(struct execctl *ctl)
{
	struct pollfd fds[EXECD_POLL_MAX + SOURCES_MAX];
	int timeout_ms = next_timer(ctl);
	size_t clients = 0, n;
	struct source *s;

	if (ctl->client != NULL)
		clients = execd_client_prepare(ctl->client, fds, &timeout_ms);
	n = clients;
	TAILQ_FOREACH (s, &ctl->sources, link)
		if (s->events != 0 && n < nitems(fds))
			fds[n++] =
			    (struct pollfd){ .fd = s->fd, .events = s->events };
	if (poll(fds, (nfds_t)n, timeout_ms) < 0) {
		if (errno != EINTR)
			return -errno;
		n = clients = 0;
	}
	hand_out(ctl, fds + clients, n - clients);
	fire_timers(ctl);
	if (ctl->client == NULL)
		return 0;
	return execd_client_dispatch(ctl->client, fds, clients);
}
