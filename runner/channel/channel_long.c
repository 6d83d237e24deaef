/* SPDX-License-Identifier: ISC */
/*
 * The session channel: long messages that are taken in as they come, and the
 * descriptors that come with a helper's frames.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel_direct.h"
#include "frame.h"
#include "intake.h"
#include "reserve.h"

/* This much of a message must be there before an intake is asked for. */
#define LOOK_BYTES (256u << 10)

void
channel_long_begin(struct channel *ch)
{
	size_t n = ch->parts.len - FRAME_HEADER_BYTES;

	if (ch->looked || ch->on->long_message == NULL || n < LOOK_BYTES)
		return;
	ch->looked = true;
	ch->intake = ch->on->long_message(
	    ch, (char *)ch->parts.data + FRAME_HEADER_BYTES, n);
	if (ch->intake == NULL)
		return;
	ch->intake_bytes = (uint32_t)n;
	buf_clear(&ch->parts);
}

static void
end_intake(struct channel *ch)
{
	intake_free(ch->intake);
	ch->intake = NULL;
	ch->intake_bytes = 0;
}

/* Restores the message into `parts`, as if it had always been in memory. */
static int
give_back(struct channel *ch)
{
	const uint8_t header[FRAME_HEADER_BYTES] = { 0 };
	int err;

	buf_put(&ch->parts, header, sizeof(header));
	err = intake_restore(ch->intake, &ch->parts);
	end_intake(ch);
	return err < 0 ? err : -EAGAIN;
}

static void
deliver(struct channel *ch)
{
	struct intake *in = ch->intake;

	/* The message may close the channel. */
	ch->intake = NULL;
	end_intake(ch);
	ch->looked = false;
	ch->spool = intake_take_spool(in);
	channel_deliver(
	    ch, 0, (char *)intake_text(in)->data, intake_text(in)->len);
	intake_free(in);
}

int
channel_long_piece(
    struct channel *ch, const uint8_t **p, size_t *len, bool more)
{
	size_t taken = intake_add(ch->intake, *p, *len);

	*p += taken;
	*len -= taken;
	ch->intake_bytes += (uint32_t)taken;
	if (*len > 0 || (!more && !intake_finish(ch->intake)))
		return give_back(ch);
	if (!more)
		deliver(ch);
	return 0;
}

/* --- descriptors -------------------------------------------------------- */

static void
keep_fds(struct channel *ch, struct msghdr *m)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (ch->nfds < CHANNEL_FDS_MAX)
				ch->fds[ch->nfds++] = fd;
			else
				close(fd);
		}
	}
}

static bool
takes_fds(const struct channel *ch)
{
	return ch->takes_fds || ch->hand_over != NULL;
}

ssize_t
channel_recv(struct channel *ch, void *p, size_t n)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(CHANNEL_FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { p, n };
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space) };
	ssize_t got;

	if (ch->hand_over != NULL)
		reserve_give(1);
	if (takes_fds(ch))
		got = recvmsg(ch->in_fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	else if (channel_is_socket(ch))
		got = recv(ch->in_fd, p, n, MSG_DONTWAIT);
	else
		got = read(ch->in_fd, p, n);
	if (got < 0)
		return -errno;
	if (takes_fds(ch))
		keep_fds(ch, &m);
	/* The descriptor comes with the first bytes, or not at all. */
	if (ch->nfds == 0 && !(m.msg_flags & MSG_CTRUNC))
		ch->hand_over = NULL;
	if (ch->hand_over == NULL || ch->nfds == 1)
		return got;
	/*
	 * Either one socket came, or none did; a handover has no more than one.
	 */
	return ch->nfds == 0 ? -EMFILE : -EBADMSG;
}

static int
next_fd(struct channel *ch)
{
	int fd = -1;

	if (ch->nfds > 0) {
		fd = ch->fds[0];
		memmove(ch->fds, ch->fds + 1, --ch->nfds * sizeof(int));
	}
	return fd;
}

/* --- delivery ----------------------------------------------------------- */

struct spool *
channel_take_spool(struct channel *ch)
{
	struct spool *s = ch->spool;

	ch->spool = NULL;
	return s;
}

void
channel_deliver(struct channel *ch, uint32_t header, char *text, size_t len)
{
	int err;

	if (ch->hand_over != NULL && ch->nfds > 0) {
		err = direct_begin(ch, text, len);
		if (err < 0)
			ch->on->broken(ch, err);
		return;
	}
	if (ch->takes_fds && header & FRAME_SPOOLED)
		ch->spool = spool_adopt(next_fd(ch));
	ch->on->message(ch, text, len);
	spool_free(channel_take_spool(ch));
}

void
channel_long_clear(struct channel *ch)
{
	end_intake(ch);
	while (ch->nfds > 0)
		close(ch->fds[--ch->nfds]);
}
