/* SPDX-License-Identifier: ISC */
/*
 * Random choices and shared files of the simulators.
 */
#include "rogue.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util.h"

#define FDS_MAX	   253 /* SCM_MAX_FD of the kernel */
#define PACKET_MAX 20000

static uint64_t state;

/* xorshift64*: quick, and the same everywhere. */
static uint64_t
next(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 2685821657736338717ULL;
}

uint32_t
rogue_pick(uint32_t n)
{
	return (uint32_t)(next() >> 32) % n;
}

void
rogue_fill(void *p, size_t n)
{
	for (uint8_t *at = p; n > 0; n--)
		*at++ = (uint8_t)(next() >> 56);
}

static void
path_of(const char *name, char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 64);

	if (n < 0)
		exit(1);
	path[n] = '\0';
	strcpy(strrchr(path, '/') + 1, name);
}

bool
rogue_load(const char *name, char *text, size_t cap)
{
	char path[PATH_MAX];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	path_of(name, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, cap - 1);
	if (n < 0)
		return false;
	text[n] = '\0';
	return true;
}

void
rogue_store(const char *name, const char *text)
{
	char path[PATH_MAX];
	_cleanup_close_ int fd = -1;

	path_of(name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		rogue_say("%s: %s", path, strerror(errno));
}

unsigned
rogue_begin(struct rogue_settings *s)
{
	char text[100];
	unsigned life = 0;

	if (!rogue_load("settings", text, sizeof(text)) ||
	    sscanf(text, "%u %u %lu", &s->seed, &s->lives, &s->messages) != 3)
		exit(1);
	if (rogue_load("life", text, sizeof(text)))
		life = (unsigned)atoi(text);
	snprintf(text, sizeof(text), "%u", life + 1);
	rogue_store("life", text);
	state = (uint64_t)s->seed << 32 | (life + 1);
	return life;
}

bool
rogue_send(int channel, const void *p, size_t n, size_t nfds)
{
	static union {
		char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)p, .iov_len = n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int *fds = (int *)(void *)CMSG_DATA(&control.align);
	struct pollfd room = { .fd = channel, .events = POLLOUT };

	if (nfds > 0) {
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(nfds * sizeof(int));
		for (size_t i = 0; i < nfds; i++)
			fds[i] = channel;
	}
	while (sendmsg(channel, &msg, MSG_NOSIGNAL) < 0) {
		if (errno != EAGAIN)
			return errno == EMSGSIZE || errno == ETOOMANYREFS;
		poll(&room, 1, 1000);
	}
	return true;
}

bool
rogue_send_anything(int channel)
{
	static uint8_t packet[PACKET_MAX];
	size_t n = rogue_pick(rogue_pick(4) ? 100 : PACKET_MAX);

	rogue_fill(packet, n < 512 ? n : 512);
	/* Half of them begin with a number that means something. */
	if (n >= 4 && rogue_pick(2)) {
		memset(packet, 0, 4);
		packet[0] = (uint8_t)rogue_pick(64);
	}
	return rogue_send(
	    channel, packet, n, rogue_pick(8) ? 0 : rogue_pick(FDS_MAX + 1));
}

void
rogue_say(const char *fmt, ...)
{
	char text[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	dprintf(STDERR_FILENO, "rogue: %.*s\n", n, text);
}
