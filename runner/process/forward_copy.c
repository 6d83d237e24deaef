/* SPDX-License-Identifier: ISC */
#include "forward_copy.h"

#include <seccomp.h>

#include "base.h"
#include "filter.h"

#define ROOM_BYTES (64u << 10)

/* One direction. */
struct way {
	int from, to; /* from is -1 after its end; to is -1 after its end */
	size_t at, end;
	uint8_t *room;
};

static const struct filter_rule permitted[] = { ALLOW(read), ALLOW(write),
	ALLOW(close), ALLOW(shutdown), ALLOW(poll), ALLOW(ppoll),
	ALLOW(getsockopt), ALLOW(restart_syscall), ALLOW(rt_sigreturn),
	ALLOW(exit_group) };

/* dprintf(3) makes calls that are not permitted, so this calls write(2). */
static int
complain(const char *what, int err)
{
	char text[128];
	ssize_t n;

	snprintf(text, sizeof(text), "%s: %s\n", what, strerror(-err));
	n = write(STDERR_FILENO, text, strlen(text));
	(void)n; /* there is nobody else to tell */
	return 1;
}

/* --- one direction ------------------------------------------------------ */

static bool
is_over(const struct way *w)
{
	return w->to < 0;
}

/* Passes the end on, and closes what is not needed any more. */
static void
finish(struct way *w)
{
	if (w->to == FORWARD_FD)
		shutdown(w->to, SHUT_WR);
	else
		close(w->to);
	w->to = -1;
}

static bool
is_later(int err)
{
	return err == EAGAIN || err == EINTR;
}

static int
fill(struct way *w)
{
	ssize_t n = read(w->from, w->room, ROOM_BYTES);

	if (n < 0)
		return is_later(errno) ? 0 : -errno;
	w->at = 0;
	w->end = (size_t)n;
	if (n == 0)
		w->from = -1;
	return 0;
}

static int
drain(struct way *w)
{
	ssize_t n = write(w->to, w->room + w->at, w->end - w->at);

	if (n < 0)
		return is_later(errno) ? 0 : -errno;
	w->at += (size_t)n;
	return 0;
}

static int
go_on(struct way *w, const struct pollfd *from, const struct pollfd *to)
{
	int err = 0;

	if (is_over(w))
		return 0;
	if (w->at == w->end && from->revents != 0)
		err = fill(w);
	else if (w->at < w->end && to->revents != 0)
		err = drain(w);
	if (err == 0 && w->at == w->end && w->from < 0)
		finish(w);
	return err;
}

/* What a direction waits for: something to read, or room for it. */
static void
await(const struct way *w, struct pollfd *from, struct pollfd *to)
{
	bool empty = w->at == w->end;

	*from = (struct pollfd){ .fd = empty ? w->from : -1, .events = POLLIN };
	*to = (struct pollfd){ .fd = empty ? -1 : w->to, .events = POLLOUT };
}

/* --- the connection ----------------------------------------------------- */

static int
await_connection(void)
{
	struct pollfd pfd = { .fd = FORWARD_FD, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int err = 0;

	while (poll(&pfd, 1, -1) < 0 && errno == EINTR)
		continue;
	if (getsockopt(FORWARD_FD, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		return -errno;
	return -err;
}

static int
copy(void)
{
	static uint8_t rooms[2][ROOM_BYTES];
	struct way ways[2] = {
		{ STDIN_FILENO, FORWARD_FD, 0, 0, rooms[0] },
		{ FORWARD_FD, STDOUT_FILENO, 0, 0, rooms[1] },
	};
	struct pollfd pfds[4];
	int err = 0;

	while (err == 0 && !is_over(&ways[1])) {
		for (size_t i = 0; i < nitems(ways); i++)
			await(&ways[i], &pfds[2 * i], &pfds[2 * i + 1]);
		if (poll(pfds, nitems(pfds), -1) < 0 && errno != EINTR)
			return -errno;
		for (size_t i = 0; i < nitems(ways) && err == 0; i++)
			err = go_on(&ways[i], &pfds[2 * i], &pfds[2 * i + 1]);
	}
	return err;
}

int
forward_copy_run(void)
{
	int err;

	prctl(PR_SET_NAME, "execd-forward");
	close_from(FORWARD_FD + 1);
	for (int fd = 0; fd <= FORWARD_FD; fd++)
		if (fd != STDERR_FILENO && set_nonblock(fd) < 0)
			return complain("a descriptor", -errno);
	err = filter_load(permitted, nitems(permitted));
	if (err < 0)
		return complain("seccomp", err);
	err = await_connection();
	if (err < 0)
		return complain("connect", err);
	err = copy();
	return err < 0 ? complain("the connection", err) : 0;
}
