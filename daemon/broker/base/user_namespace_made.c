/* SPDX-License-Identifier: ISC */
/*
 * The user namespace of a user's sandboxes. A program of its own makes it,
 * which root executes: whoever has the namespace may signal everybody in it,
 * and this must never be a copy of root's execd.
 */
#include "user_namespace_made.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "control_spawn.h"
#include "seqpacket.h"
#include "util.h"

/* It takes two milliseconds. Only root can stop or kill the program. */
#define CHILD_MS 2000

static void __attribute__((noreturn))
child(int program_fd, uid_t uid, gid_t gid, int channel)
{
	char user[CHILD_USER_MAX];
	char *argv[] = { (char *)(uintptr_t) "execd-runner",
		(char *)(uintptr_t) "--user-namespace",
		child_user(user, uid, gid), NULL };
	char *none[] = { NULL };

	child_reset_signals();
	child_set_groups(NULL, 0);
	child_exec(program_fd, channel, argv, none);
}

int
userns_receive(int channel, const char **step)
{
	static struct spawn_opened answer;
	struct pollfd pfd = { .fd = channel, .events = POLLIN };
	int fds[SEQPACKET_FDS_MAX] = { -1 };
	size_t nfds = 0;
	ssize_t n;

	if (poll(&pfd, 1, CHILD_MS) <= 0)
		return -ETIMEDOUT;
	n = seqpacket_recv(channel, &answer, sizeof(answer), fds, &nfds);
	if (n != sizeof(answer) || !SPAWN_IS_TEXT(answer.result.step) ||
	    nfds != (answer.result.error == 0))
		return -EIO;
	*step = answer.result.step;
	return answer.result.error == 0 ? fds[0] : -(int)answer.result.error;
}

int
userns_open(int program_fd, uid_t uid, gid_t gid, const char **step)
{
	int pair[2], fd, err = seqpacket_pair(pair);
	pid_t pid;

	*step = "starting execd-runner --user-namespace";
	if (err < 0)
		return err;
	pid = fork();
	if (pid == 0)
		child(program_fd, uid, gid, pair[1]);
	close(pair[1]);
	fd = pid < 0 ? -errno : userns_receive(pair[0], step);
	close(pair[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	return fd;
}
