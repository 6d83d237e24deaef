/* SPDX-License-Identifier: ISC */
/*
 * One epoll set for the whole broker. With 10 000 sessions, poll(2) would pass
 * 10 000 descriptors to the kernel at every wake-up. Channels of untrusted
 * programs are closed here.
 */
#include "event_source.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include "base.h"
#include "dispose.h"

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

#define BATCH 64

static int epoll_fd = -1;
static struct epoll_event batch[BATCH];
static int batch_len;

int
event_source_init(void)
{
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return epoll_fd < 0 ? -errno : 0;
}

int
event_source_add(struct event_source *s, int fd, uint32_t events,
    void (*ready)(struct event_source *s, uint32_t events))
{
	struct epoll_event ev = { .events = events, .data.ptr = s };

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	s->fd = fd;
	s->ready = ready;
	return 0;
}

void
event_source_set_events(struct event_source *s, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = s };

	epoll_ctl(epoll_fd, EPOLL_CTL_MOD, s->fd, &ev);
}

int
event_source_detach(struct event_source *s)
{
	int fd = s->fd;

	if (fd < 0)
		return -1;
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	s->fd = -1;
	for (int i = 0; i < batch_len; i++)
		if (batch[i].data.ptr == s)
			batch[i].data.ptr = NULL;
	return fd;
}

void
event_source_remove(struct event_source *s)
{
	int fd = event_source_detach(s);

	if (fd >= 0)
		close(fd);
}

int
event_source_dispatch(int timeout_ms)
{
	int n;

	batch_len = epoll_wait(epoll_fd, batch, BATCH, timeout_ms);
	if (batch_len < 0) {
		batch_len = 0;
		return errno == EINTR ? 0 : -errno;
	}
	for (int i = 0; i < batch_len; i++) {
		struct event_source *s = batch[i].data.ptr;

		if (s != NULL)
			s->ready(s, batch[i].events);
	}
	n = batch_len;
	batch_len = 0;
	return n;
}
