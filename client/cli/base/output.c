/* SPDX-License-Identifier: ISC */
/*
 * Queues bytes for standard output or error.
 */
#include "base.h"
#include "execctl.h"

/* PIPE_BUF: a writable pipe takes this many bytes without blocking. */
#define PIECE_BYTES 4096

static void ready(void *arg);

void
output_init(struct output *o, struct execctl *ctl, int fd,
    void (*changed)(void *arg), void *arg)
{
	*o = (struct output){
		.ctl = ctl, .fd = fd, .changed = changed, .arg = arg
	};
	o->source.ready = ready;
	o->source.arg = o;
	buf_init(&o->queue, SIZE_MAX / 2);
}

void
output_clear(struct output *o)
{
	source_remove(o->ctl, &o->source);
	buf_clear(&o->queue);
}

size_t
output_queued(const struct output *o)
{
	return o->queue.len - o->at;
}

/* A regular file is always ready and never blocks for long. */
static bool
is_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static bool
is_writable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, 0) == 1;
}

static void
write_some(struct output *o)
{
	bool file = is_file(o->fd);

	while (output_queued(o) > 0 && (file || is_writable(o->fd))) {
		size_t n = output_queued(o);
		ssize_t put;

		if (!file && n > PIECE_BYTES)
			n = PIECE_BYTES;
		put = write(o->fd, o->queue.data + o->at, n);
		if (put < 0 && (errno == EINTR || errno == EAGAIN))
			break;
		if (put < 0) {
			o->failed = -errno;
			o->at = o->queue.len;
			break;
		}
		o->at += (size_t)put;
	}
	if (o->at == o->queue.len || o->at > o->queue.len / 2) {
		buf_consume(&o->queue, o->at);
		o->at = 0;
	}
	source_set(o->ctl, &o->source, o->fd, output_queued(o) ? POLLOUT : 0);
}

static void
ready(void *arg)
{
	struct output *o = arg;

	write_some(o);
	if (o->changed != NULL)
		o->changed(o->arg);
}

void
output_put(struct output *o, const void *data, size_t len)
{
	if (o->failed < 0)
		return;
	buf_put(&o->queue, data, len);
	write_some(o);
	if (o->failed < 0 && o->changed != NULL)
		o->changed(o->arg);
}

int
output_drain(struct output *o)
{
	while (output_queued(o) > 0 && o->failed == 0)
		loop_once(o->ctl);
	return o->failed;
}

void
size_put(struct buf *b, double n)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	size_t i = 0;

	while (n >= 1000 && i < nitems(units) - 1) {
		n /= 1024;
		i++;
	}
	buf_printf(b, i == 0 ? "%.0f %s" : "%.1f %s", n, units[i]);
}
