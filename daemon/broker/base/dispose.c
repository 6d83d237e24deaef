/* SPDX-License-Identifier: ISC */
#include "dispose.h"

#include <sched.h>

#include "base.h"

/* The most children that wait at once. Each such descriptor costs its sender
 * its life. */
#define CLOSERS_MAX 32
#define REMOVED_MS  1000 /* one turn of the scheduler */
#define ENDED_MS    20	 /* all senders wait meanwhile */

static unsigned closers;

/* No other child is one of __WCLONE: closers send no SIGCHLD at their end. */
static void
reap(void)
{
	while (waitpid(-1, NULL, __WCLONE | WNOHANG) > 0)
		closers -= closers > 0;
}

/* Returns the pid of another child, 0 in the child, or -errno: -EAGAIN if
 * CLOSERS_MAX of them wait. */
static pid_t
fork_closer(void)
{
	pid_t pid;

	reap();
	if (closers == CLOSERS_MAX)
		return -EAGAIN;
	pid = (pid_t)syscall(SYS_clone, CLONE_FILES, NULL, NULL, NULL, NULL);
	closers += pid > 0;
	return pid < 0 ? -errno : pid;
}

/* Waits until the descriptor is gone from the table, which is the first thing
 * that a close does. */
static void
await_removal(int fd)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	int64_t until = now_ms() + REMOVED_MS;

	while (fcntl(fd, F_GETFD) >= 0 && now_ms() < until)
		nanosleep(&pause, NULL);
}

/* A killed closer is usually gone at once. If not, it is found later. Until
 * then it is shown as a defunct process. */
static void
end(pid_t pid)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	int64_t until = now_ms() + ENDED_MS;
	unsigned before = closers;

	kill(pid, SIGKILL);
	for (reap(); closers == before && now_ms() < until; reap())
		nanosleep(&pause, NULL);
}

static void
dispose_one(int fd)
{
	pid_t pid = fork_closer();

	if (pid == 0) {
		close(fd);
		_exit(0);
	}
	if (pid < 0) {
		log_error((int)pid,
		    "a descriptor stays open: closing it could block");
		return;
	}
	await_removal(fd);
	/* This also ends the wait for a socket that lingers. */
	end(pid);
}

void
dispose(const int *fds, size_t n)
{
	while (n-- > 0)
		if (fds[n] >= 0)
			dispose_one(fds[n]);
}
