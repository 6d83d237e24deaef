/* SPDX-License-Identifier: ISC */
#include "seqpacket.h"

union fds_control {
	char space[CMSG_SPACE(SEQPACKET_FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

int
seqpacket_pair(int fds[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		0, fds) < 0)
		return -errno;
	return 0;
}

int
seqpacket_send(int fd, const void *p, size_t n, const int *fds, size_t nfds)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)p, .iov_len = n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union fds_control control;

	if (nfds > SEQPACKET_FDS_MAX)
		return -EINVAL;
	if (nfds > 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, nfds * sizeof(int));
	}
	while (sendmsg(fd, &msg, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static void
take_fds(struct msghdr *msg, int *fds, size_t *nfds)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL;
	     c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(fds + *nfds, CMSG_DATA(c), n * sizeof(int));
		*nfds += n;
	}
}

static void
close_each(const int *fds, size_t n)
{
	while (n > 0)
		close(fds[--n]);
}

static void (*drop)(const int *fds, size_t n) = close_each;

void
seqpacket_set_drop(void (*how)(const int *fds, size_t n))
{
	drop = how;
}

ssize_t
seqpacket_recv(
    int fd, void *p, size_t cap, int fds[SEQPACKET_FDS_MAX], size_t *nfds)
{
	union fds_control control;
	struct iovec iov = { .iov_base = p, .iov_len = cap };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space) };
	ssize_t n;

	*nfds = 0;
	while ((n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT)) < 0)
		if (errno != EINTR)
			return -errno;
	take_fds(&msg, fds, nfds);
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		n = -EMSGSIZE;
	/* An empty message looks like the end, but can carry descriptors. */
	if (n <= 0) {
		drop(fds, *nfds);
		*nfds = 0;
	}
	return n;
}
