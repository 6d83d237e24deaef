/* SPDX-License-Identifier: ISC */
/*
 * The terminal of a sandboxed command. The runner opens a terminal before it
 * knows the view, in a file system that the view does not have. So the command
 * opens another one, and the runner uses that.
 */
#include "inside_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rights.h"
#include "view.h"

#define SLAVE_FLAGS (O_RDWR | O_NOCTTY | O_CLOEXEC)

/* Kernels before 4.13 have no TIOCGPTPEER and need the name. */
static int
open_slave(int master)
{
	int fd = ioctl(master, TIOCGPTPEER, SLAVE_FLAGS);
	char name[32];
	unsigned n;

	if (fd >= 0)
		return fd;
	if (ioctl(master, TIOCGPTN, &n) < 0)
		return -errno;
	snprintf(name, sizeof(name), "/dev/pts/%u", n);
	fd = open(name, SLAVE_FLAGS);
	return fd < 0 ? -errno : fd;
}

static int
copy_size(int from, int to)
{
	struct winsize size;

	return ioctl(from, TIOCGWINSZ, &size) < 0 ||
		       ioctl(to, TIOCSWINSZ, &size) < 0
		   ? -errno
		   : 0;
}

int
inside_terminal(int stdio[3], int to)
{
	struct iovec byte = { .iov_base = (char[]){ 0 }, .iov_len = 1 };
	int master, slave, err = view_mount_terminals(), locked = 0;

	if (err < 0)
		return err;
	master = open("/dev/pts/ptmx", SLAVE_FLAGS | O_NONBLOCK);
	if (master < 0 || ioctl(master, TIOCSPTLCK, &locked) < 0)
		return -errno;
	err = copy_size(stdio[0], master);
	slave = err < 0 ? err : open_slave(master);
	if (slave < 0)
		return slave;
	if (rights_send(to, &byte, 1, master) != 1)
		return -errno;
	for (int i = 0; i < 3; i++)
		stdio[i] = slave;
	return 0;
}

int
inside_terminal_take(int from)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec byte = { .iov_base = (char[1]){ 0 }, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &byte,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(from, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n == 1 ? CMSG_FIRSTHDR(&m) : NULL;
	int fd = -1;

	if (c != NULL && c->cmsg_level == SOL_SOCKET &&
	    c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}
