/* SPDX-License-Identifier: ISC */
#include "input.h"

#include <event2/event.h>

#include "loop.h"

struct input_chunk {
	TAILQ_ENTRY(input_chunk) link; /* input.queue */
	size_t at, len;
	input_answer_fn *answer; /* NULL: accepted */
	void *arg;
	char *write_id; /* owned; of a waiting write */
	size_t write_id_len;
	char bytes[];
};

static void write_cb(evutil_socket_t fd, short what, void *arg);

void
input_open(struct input *in, struct event_base *base, int fd)
{
	*in = (struct input){ .fd = fd, .closed_as = INPUT_CLOSED };
	TAILQ_INIT(&in->queue);
	if (fd >= 0)
		event_assign(&in->event, base, fd, EV_WRITE, write_cb, in);
}

static void
chunk_free(struct input *in, struct input_chunk *c)
{
	TAILQ_REMOVE(&in->queue, c, link);
	if (c->answer != NULL) {
		in->waiting--;
		in->waiting_bytes -= c->len;
	} else {
		in->queued--;
		in->queued_bytes -= c->len;
	}
	free(c->write_id);
	free(c);
}

static bool
has_room(const struct input *in, size_t len)
{
	return in->queued == 0 ||
	       (in->queued < INPUT_QUEUE_CHUNKS &&
		   in->queued_bytes + len <= INPUT_QUEUE_BYTES);
}

/* Remembers the id of a write; a write without an id is not remembered. */
static void
remember(struct input *in, struct slice id)
{
	if (id.len > 0)
		recent_ids_add(&in->ids, id);
}

/* There is room again: accepts the oldest waiting writes. */
static void
accept_waiting(struct input *in)
{
	struct input_chunk *c, *next;

	TAILQ_FOREACH_SAFE (c, &in->queue, link, next) {
		input_answer_fn *answer = c->answer;

		if (answer == NULL)
			continue;
		if (!has_room(in, c->len))
			return;
		remember(in, (struct slice){ c->write_id, c->write_id_len });
		in->waiting--;
		in->waiting_bytes -= c->len;
		in->queued++;
		in->queued_bytes += c->len;
		c->answer = NULL;
		answer(c->arg, INPUT_ACCEPTED);
	}
}

/* Returns the bytes written, 0 if the command takes no more now, or -errno. */
static ssize_t
write_some(struct input *in, const char *p, size_t n)
{
	ssize_t written = write(in->fd, p, n);

	if (written < 0 && errno != EAGAIN && errno != EINTR)
		return -errno;
	if (written < 0)
		written = 0;
	if ((size_t)written < n)
		wide_pipe_note_full(&in->wide, in->fd);
	return written;
}

static void
arm(struct input *in)
{
	if (in->armed || TAILQ_EMPTY(&in->queue))
		return;
	in->armed = true;
	loop_add(&in->event, NULL);
}

static void
write_queue(struct input *in)
{
	struct input_chunk *c;

	while ((c = TAILQ_FIRST(&in->queue)) != NULL) {
		ssize_t n = write_some(in, c->bytes + c->at, c->len - c->at);

		if (n < 0) {
			log_debug("standard input: %zu bytes not taken: %s",
			    in->queued_bytes, strerror((int)-n));
			input_close(in, INPUT_CLOSED);
			return;
		}
		c->at += (size_t)n;
		if (c->at < c->len)
			break;
		chunk_free(in, c);
		accept_waiting(in);
	}
	if (c == NULL && in->closing)
		input_close(in, INPUT_CLOSED);
	else
		arm(in);
}

static void
write_cb(evutil_socket_t fd, short what, void *arg)
{
	struct input *in = arg;

	in->armed = false;
	write_queue(in);
}

static struct input_chunk *
enqueue(struct input *in, struct slice data, size_t at)
{
	struct input_chunk *c = xmalloc(sizeof(*c) + data.len);

	*c = (struct input_chunk){ .at = at, .len = data.len };
	memcpy(c->bytes, data.ptr, data.len);
	TAILQ_INSERT_TAIL(&in->queue, c, link);
	return c;
}

static enum input_status
wait_for_room(struct input *in, struct slice write_id, struct slice data,
    input_answer_fn *answer, void *arg)
{
	struct input_chunk *c;

	if (in->waiting >= INPUT_WAITING_MAX ||
	    in->waiting_bytes + data.len > INPUT_WAITING_BYTES)
		return INPUT_FULL;
	c = enqueue(in, data, 0);
	c->answer = answer;
	c->arg = arg;
	c->write_id = xstrndup(write_id.ptr, write_id.len);
	c->write_id_len = write_id.len;
	in->waiting++;
	in->waiting_bytes += data.len;
	return INPUT_WAITING;
}

/*
 * Tells whether a write with this id waits already. Then both wait for the same
 * bytes, which are written once.
 */
static bool
is_waiting(const struct input *in, struct slice id)
{
	struct input_chunk *c;

	if (in->waiting == 0 || id.len == 0)
		return false;
	TAILQ_FOREACH (c, &in->queue, link)
		if (c->answer != NULL &&
		    slice_equal(
			id, (struct slice){ c->write_id, c->write_id_len }))
			return true;
	return false;
}

enum input_status
input_write(struct input *in, struct slice write_id, struct slice data,
    input_answer_fn *answer, void *arg)
{
	ssize_t n = 0;

	if (recent_ids_has(&in->ids, write_id))
		return INPUT_ACCEPTED;
	if (in->fd < 0 || in->closing)
		return in->closed_as;
	if (is_waiting(in, write_id))
		data.len = 0;
	if (!TAILQ_EMPTY(&in->queue) &&
	    (in->waiting > 0 || !has_room(in, data.len)))
		return wait_for_room(in, write_id, data, answer, arg);
	if (TAILQ_EMPTY(&in->queue) && data.len > 0)
		n = write_some(in, data.ptr, data.len);
	if (n < 0) {
		input_close(in, INPUT_CLOSED);
		return in->closed_as;
	}
	remember(in, write_id);
	if ((size_t)n < data.len) {
		enqueue(in, data, (size_t)n);
		in->queued++;
		in->queued_bytes += data.len;
		arm(in);
	}
	return INPUT_ACCEPTED;
}

void
input_finish(struct input *in)
{
	if (in->fd < 0)
		return;
	in->closing = true;
	if (TAILQ_EMPTY(&in->queue))
		input_close(in, INPUT_CLOSED);
}

void
input_refuse_waiting(struct input *in)
{
	struct input_chunk *c, *next;

	TAILQ_FOREACH_SAFE (c, &in->queue, link, next) {
		input_answer_fn *answer = c->answer;
		void *arg = c->arg;

		if (answer == NULL)
			continue;
		chunk_free(in, c);
		answer(arg, INPUT_FULL);
	}
}

void
input_close(struct input *in, enum input_status as)
{
	struct input_chunk *c;

	if (in->fd >= 0) {
		event_del(&in->event);
		close(in->fd);
		in->fd = -1;
		wide_pipe_end(&in->wide);
	}
	in->closed_as = as;
	while ((c = TAILQ_FIRST(&in->queue)) != NULL) {
		input_answer_fn *answer = c->answer;
		void *arg = c->arg;

		chunk_free(in, c);
		if (answer != NULL)
			answer(arg, as);
	}
}

void
input_clear(struct input *in)
{
	input_close(in, INPUT_CLOSED);
	recent_ids_clear(&in->ids);
}

/* --- wide pipes --------------------------------------------------------- */

/* The new size, and how often the pipe must have been full. */
#define WIDE_BYTES (1 << 20)
#define FULL_TIMES 4

/*
 * The pipes of one user may hold 64 MiB together; beyond that the kernel makes
 * new ones tiny. A runner enlarges no more pipes than this.
 */
#define WIDE_MAX 16

static unsigned wide_pipes;

void
wide_pipe_note_full(struct wide_pipe *w, int fd)
{
	if (w->asked || ++w->times_full < FULL_TIMES)
		return;
	w->asked = true;
	if (wide_pipes == WIDE_MAX)
		return;
	/* If the kernel refuses, the pipe is used as it is. */
	w->wide = fcntl(fd, F_SETPIPE_SZ, WIDE_BYTES) >= 0;
	wide_pipes += w->wide;
}

void
wide_pipe_end(struct wide_pipe *w)
{
	wide_pipes -= w->wide;
	*w = (struct wide_pipe){ 0 };
}
