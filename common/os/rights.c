/* SPDX-License-Identifier: ISC */
/*
 * Descriptors that travel beside the bytes of a stream socket.
 */
#include "rights.h"

#include <string.h>
#include <sys/socket.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

ssize_t
rights_send(int sock, struct iovec *iov, int n, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr m = { .msg_iov = iov,
		.msg_iovlen = (size_t)n,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return sendmsg(sock, &m, MSG_NOSIGNAL);
}

void
rights_refuse(int sock)
{
	const int off = 0;

	setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}
