/* SPDX-License-Identifier: ISC */
/*
 * Channels of untrusted programs.
 */
#include "dispose_channel.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dispose.h"

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
