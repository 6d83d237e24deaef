/* SPDX-License-Identifier: ISC */
/*
 * Descriptors of untrusted programs.
 */
#include "dispose.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "util.h"

/* The most children that wait at once. Each such descriptor costs its sender
 * its life. */
#define CLOSERS_MAX 32
#define REMOVED_MS  1000 /* one turn of the scheduler */
#define ENDED_MS    20	 /* all senders wait meanwhile */

static pid_t closers[CLOSERS_MAX];

static void
reap(void)
{
	for (size_t i = 0; i < nitems(closers); i++)
		if (closers[i] > 0 &&
		    waitpid(closers[i], NULL, __WALL | WNOHANG) != 0)
			closers[i] = 0;
}

static pid_t *
find_slot(void)
{
	reap();
	for (size_t i = 0; i < nitems(closers); i++)
		if (closers[i] == 0)
			return &closers[i];
	return NULL;
}

/* The child sends no SIGCHLD at its end, and shares our table of
 * descriptors. */
static pid_t
start_closer(int fd)
{
	pid_t pid =
	    (pid_t)syscall(SYS_clone, CLONE_FILES, NULL, NULL, NULL, NULL);

	if (pid == 0) {
		close(fd);
		_exit(0);
	}
	return pid;
}

static bool
is_removed(int fd)
{
	return fcntl(fd, F_GETFD) < 0;
}

/* Waits until the descriptor is gone from the table, which is the first thing
 * that a close does. */
static void
await_removal(int fd)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	int64_t until = now_ms() + REMOVED_MS;

	while (!is_removed(fd) && now_ms() < until)
		nanosleep(&pause, NULL);
}

/* A killed closer is usually gone at once. If not, it is found at the next
 * disposal. Until then it is shown as a defunct process. */
static void
await_end(const pid_t *slot)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	int64_t until = now_ms() + ENDED_MS;

	for (reap(); *slot != 0 && now_ms() < until; reap())
		nanosleep(&pause, NULL);
}

static void
dispose_one(int fd)
{
	pid_t *slot = find_slot();
	pid_t pid = slot != NULL ? start_closer(fd) : -1;

	if (pid <= 0) {
		log_error(slot != NULL ? -errno : -EAGAIN,
		    "a descriptor stays open: closing it could block");
		return;
	}
	*slot = pid;
	await_removal(fd);
	/* This also ends the wait for a socket that lingers. */
	kill(pid, SIGKILL);
	await_end(slot);
}

void
dispose(const int *fds, size_t n)
{
	while (n-- > 0)
		if (fds[n] >= 0)
			dispose_one(fds[n]);
}

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
		dispose_one(fd);
	else
		close(fd);
}
