/*
 * Files that stay open without a descriptor.
 */
#include "inflight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "seqpacket.h"
#include "util.h"

struct inflight_box {
	int in, out;		 /* -1: there is none yet */
	uint32_t used;		 /* a bit for each */
	int loose[INFLIGHT_BOX]; /* could not be sent on; or -1 */
};

_Static_assert(INFLIGHT_BOX == 32, "used has a bit for each");

/* --- boxes -------------------------------------------------------------- */

static int
open_box(struct inflight *f, struct inflight_box *b)
{
	int pair[2];
	int err = seqpacket_pair(pair);

	if (err < 0)
		return err;
	b->in = pair[0];
	b->out = pair[1];
	f->descriptors += 2;
	return 0;
}

static void
close_box(struct inflight *f, struct inflight_box *b)
{
	close(b->in);
	close(b->out);
	b->in = b->out = -1;
	f->descriptors -= 2;
}

static struct inflight_box *
add_box(struct inflight *f)
{
	struct inflight_box *b;

	f->boxes = xreallocarray(f->boxes, f->count + 1, sizeof(*b));
	b = &f->boxes[f->count++];
	*b = (struct inflight_box){ .in = -1, .out = -1 };
	for (unsigned i = 0; i < INFLIGHT_BOX; i++)
		b->loose[i] = -1;
	return b;
}

/* With room; another one is opened only when all are full. */
static struct inflight_box *
find_box(struct inflight *f)
{
	struct inflight_box *empty = NULL;

	for (uint32_t i = 0; i < f->count; i++) {
		if (f->boxes[i].used == 0)
			empty = &f->boxes[i];
		else if (f->boxes[i].used != UINT32_MAX)
			return &f->boxes[i];
	}
	return empty != NULL ? empty : add_box(f);
}

/* --- in and out --------------------------------------------------------- */

int
inflight_put(struct inflight *f, int fd)
{
	struct inflight_box *b = find_box(f);
	uint8_t slot = (uint8_t)__builtin_ctz(~b->used);
	int err = b->in < 0 ? open_box(f, b) : 0;

	if (err == 0)
		err = seqpacket_send(b->in, &slot, 1, &fd, 1);
	if (err == 0) {
		close(fd);
		b->used |= UINT32_C(1) << slot;
	} else if (b->in >= 0 && b->used == 0)
		close_box(f, b);
	return err < 0 ? err : (int)(b - f->boxes) * INFLIGHT_BOX + slot;
}

/* A file that arrives and finds no number is lost. */
static int
check_free(const struct inflight_box *b)
{
	int fd = fcntl(b->out, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* The first in line. Its slot or -errno. */
static int
receive(const struct inflight_box *b, int *fd)
{
	int fds[SEQPACKET_FDS_MAX];
	uint8_t slot;
	size_t nfds;
	ssize_t n = seqpacket_recv(b->out, &slot, 1, fds, &nfds);

	if (n < 0)
		return (int)n;
	*fd = fds[0];
	return slot;
}

/* To the end of the line, or it stays here. 0 or -errno: no more may come. */
static int
send_on(struct inflight_box *b, uint8_t slot, int fd)
{
	if (seqpacket_send(b->in, &slot, 1, &fd, 1) == 0) {
		close(fd);
		return 0;
	}
	b->loose[slot] = fd;
	return check_free(b);
}

static int
find(struct inflight_box *b, int wanted)
{
	int slot, fd = -1, err = check_free(b);

	while (err == 0) {
		slot = receive(b, &fd);
		if (slot < 0 || slot == wanted)
			return slot < 0 ? slot : fd;
		err = send_on(b, (uint8_t)slot, fd);
	}
	return err;
}

int
inflight_take(struct inflight *f, int key)
{
	struct inflight_box *b = &f->boxes[key / INFLIGHT_BOX];
	int slot = key % INFLIGHT_BOX;
	int fd = b->loose[slot];

	if (fd < 0)
		fd = find(b, slot);
	if (fd < 0)
		return fd;
	b->loose[slot] = -1;
	b->used &= ~(UINT32_C(1) << slot);
	if (b->used == 0)
		close_box(f, b);
	return fd;
}

void
inflight_clear(struct inflight *f)
{
	for (uint32_t i = 0; i < f->count; i++) {
		struct inflight_box *b = &f->boxes[i];

		for (unsigned slot = 0; slot < INFLIGHT_BOX; slot++)
			if (b->loose[slot] >= 0)
				close(b->loose[slot]);
		if (b->in >= 0)
			close_box(f, b);
	}
	free(f->boxes);
	*f = (struct inflight)INFLIGHT_INITIALIZER;
}
