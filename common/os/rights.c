/* SPDX-License-Identifier: ISC */
#include "rights.h"

#include "base.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

void
rights_attach(struct msghdr *m, void *control, const int *fds, size_t nfds)
{
	struct cmsghdr *c = control;

	m->msg_control = control;
	m->msg_controllen = CMSG_SPACE(nfds * sizeof(int));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
	memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
}

void
rights_take(struct msghdr *m, int *fds, size_t *nfds, size_t most)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL;
	     c = CMSG_NXTHDR(m, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		int fd;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (*nfds < most)
				fds[(*nfds)++] = fd;
			else
				close(fd);
		}
	}
}

ssize_t
rights_send(int sock, struct iovec *iov, int n, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = (size_t)n };

	rights_attach(&m, &control, &fd, 1);
	return sendmsg(sock, &m, MSG_NOSIGNAL);
}

void
rights_refuse(int sock)
{
	const int off = 0;

	setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}
