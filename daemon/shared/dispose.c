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

/* Children that wait at once; each such descriptor costs its sender its life.
 */
#define CLOSERS_MAX 32
#define REMOVED_MS  1000 /* a scheduler's turn */
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

/* It tells nobody of its end (no SIGCHLD), and has no descriptors of its own:
 * the table is ours. */
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

/* From the table: that is the first thing a close does. */
static void
await_removal(int fd)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	int64_t until = now_ms() + REMOVED_MS;

	while (!is_removed(fd) && now_ms() < until)
		nanosleep(&pause, NULL);
}

/* A killed closer is mostly gone at once. One that is not is found at the next
 * disposal; until then it is shown as a defunct process. */
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
	/* Also ends the wait for a socket that lingers. */
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

/* An empty message looks like the end, but has its sender's credentials. */
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
	/* Nothing more comes. */
	shutdown(fd, SHUT_RDWR);
	if (has_unread(fd))
		dispose_one(fd);
	else
		close(fd);
}
