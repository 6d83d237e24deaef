/* SPDX-License-Identifier: ISC */
#include "proxy_pipe.h"

#include <event2/event.h>

#include "loop.h"

#define PIPE_BYTES (256u << 10) /* that the kernel is asked for */
#define TAKE_BYTES (256u << 10) /* at once */
#define STEPS_MAX  8		/* before other connections get their turn */

/* Writes what goes first. Returns 1 if it is gone, 0 to wait, or -errno. */
static int
write_first(struct proxy_pipe *p)
{
	while (p->first.len > 0) {
		ssize_t n =
		    send(p->to, p->first.data, p->first.len, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		buf_consume(&p->first, (size_t)n);
	}
	buf_clear(&p->first);
	return 1;
}

/* Empties the pipe. Returns 1, 0 to wait, or -errno. */
static int
empty(struct proxy_pipe *p)
{
	while (p->inside > 0) {
		ssize_t n = splice(p->fds[0], NULL, p->to, NULL, p->inside,
		    SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		p->inside -= (size_t)n;
	}
	return 1;
}

/* Fills the empty pipe. Returns the bytes, 0 at the end, or -errno. */
static ssize_t
take(struct proxy_pipe *p)
{
	size_t most = TAKE_BYTES;
	ssize_t n;

	if (p->limited && p->left < most)
		most = (size_t)p->left;
	if (most == 0)
		return 0;
	n = splice(p->from, NULL, p->fds[1], NULL, most,
	    SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n < 0)
		return -errno;
	p->inside += (size_t)n;
	p->left -= p->limited ? (uint64_t)n : 0;
	return n;
}

static int
make_pipe(struct proxy_pipe *p)
{
	if (p->fds[0] >= 0)
		return 0;
	if (pipe2(p->fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	/* A user with many pipes keeps the small ones. */
	(void)fcntl(p->fds[1], F_SETPIPE_SZ, PIPE_BYTES);
	return 0;
}

/* Returns false if it waits, is over, or if p is gone. */
static bool
step(struct proxy_pipe *p)
{
	int err = write_first(p);
	ssize_t n;

	if (err > 0)
		err = empty(p);
	if (err == 0)
		loop_add(&p->writable, NULL);
	if (err > 0 && p->ended) {
		p->done = true;
		p->events->done(p->arg, p);
		return false;
	}
	if (err > 0 && (err = make_pipe(p)) == 0)
		err = 1;
	if (err < 0)
		p->events->broken(p->arg, p, err);
	if (err <= 0)
		return false;
	n = take(p);
	if (n == -EAGAIN)
		loop_add(&p->readable, NULL);
	else if (n < 0)
		p->events->broken(p->arg, p, (int)n);
	if (n < 0)
		return false;
	p->ended = n == 0;
	return n == 0 || p->events->moved(p->arg, (size_t)n);
}

static void
ready_cb(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_pipe *p = arg;

	for (int i = 0; i < STEPS_MAX; i++)
		if (!step(p))
			return;
	loop_add_ms(&p->readable, 0);
}

void
proxy_pipe_start(struct proxy_pipe *p, struct event_base *base, int from,
    int to, struct buf *first, const struct proxy_pipe_events *events,
    void *arg)
{
	p->from = from;
	p->to = to;
	p->fds[0] = p->fds[1] = -1;
	p->first = *first;
	buf_init(first, first->limit);
	p->events = events;
	p->arg = arg;
	event_assign(&p->readable, base, from, EV_READ, ready_cb, p);
	event_assign(&p->writable, base, to, EV_WRITE, ready_cb, p);
	loop_add_ms(&p->readable, 0);
}

void
proxy_pipe_stop(struct proxy_pipe *p)
{
	if (p->events == NULL)
		return;
	event_del(&p->readable);
	event_del(&p->writable);
	if (p->fds[0] >= 0) {
		close(p->fds[0]);
		close(p->fds[1]);
	}
	buf_clear(&p->first);
	p->events = NULL;
}
