/* SPDX-License-Identifier: ISC */
/* Enters the namespaces of a sandbox, and sets limits there. */
#include "sandbox_userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"
#include "loopback.h"
#include "userns.h"
#include "util.h"

int
userns_enter(int userns, bool network, bool *none, const char **step)
{
	int err = 0;

	*none = false;
	*step = "entering the session's user namespace";
	if (userns < 0)
		err = userns_enter_new(none, step);
	else if (setns(userns, CLONE_NEWUSER) < 0)
		err = -errno;
	if (err < 0)
		return err;
	*step = "new mount, ipc and uts namespaces";
	if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		return -errno;
	*step = "a new network namespace";
	if (network)
		return 0;
	return unshare(CLONE_NEWNET) < 0 ? -errno : loopback_prepare(step);
}

/* --- /proc -------------------------------------------------------------- */

static int
await(pid_t pid)
{
	int status;

	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (pid < 0)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

/* Only in its own pid namespace may a process mount a /proc. */
static int
try_proc(void)
{
	const char *step;
	pid_t pid;

	if (userns_enter_new(NULL, &step) < 0)
		return 0;
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWNS | CLONE_NEWPID | SIGCHLD,
	    NULL, NULL, NULL, NULL);
	if (pid == 0)
		_exit(mount("proc", "/proc", "proc",
			  MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=2") < 0
			  ? errno
			  : 0);
	return await(pid);
}

int
userns_try_proc(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(-try_proc());
	return await(pid);
}

/* --- limits ------------------------------------------------------------- */

/*
 * Limits what the kernel counts per user, also inside a sandbox (namespaces(7),
 * "The /proc/sys/user directory"). A limit applies in the namespace where it is
 * written. What is used there is still charged to the user outside.
 */

static int
read_number(const char *path, unsigned long *n)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32], *end;
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (len < 0)
		return -errno;
	text[len] = '\0';
	*n = strtoul(text, &end, 10);
	return end == text ? -EINVAL : 0;
}

static int
write_number(const char *path, unsigned long n)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	char text[32];
	ssize_t len = snprintf(text, sizeof(text), "%lu\n", n);
	ssize_t done = fd < 0 ? -1 : write(fd, text, (size_t)len);

	/* A short write sets no errno. */
	return done < 0 ? -errno : done == len ? 0 : -EIO;
}

void
shared_counts_limit(void)
{
	static const struct {
		const char *of_user, *here;
		unsigned long part;
	} counts[] = {
		{ "/proc/sys/fs/inotify/max_user_instances",
		    "/proc/sys/user/max_inotify_instances", 4 },
		{ "/proc/sys/fs/inotify/max_user_watches",
		    "/proc/sys/user/max_inotify_watches", 2 },
	};

	for (size_t i = 0; i < nitems(counts); i++) {
		unsigned long n = 0;
		int err = read_number(counts[i].of_user, &n);

		if (err == 0)
			err = write_number(counts[i].here, n / counts[i].part);
		if (err < 0)
			log_warn(err,
			    "%s: sandboxed commands may use up the limit of "
			    "their user",
			    counts[i].here);
	}
}
