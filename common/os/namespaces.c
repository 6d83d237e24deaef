/* SPDX-License-Identifier: ISC */
/*
 * A session's own namespaces (pid_namespaces(7), mount_namespaces(7)).
 */
#include "namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log.h"
#include "util.h"

static long
read_number(const char *path)
{
	char text[32] = "";
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return -errno;
	return atol(text);
}

/* Of the parent's /proc, for all its children: writing it sets the number of
 * whoever writes. */
static int last_pid_fd = -1;

/* Read by the parent: asked from inside, the kernel keeps an entry for every
 * namespace that ever asked, and looks through all of them. */
static long pid_max;

pid_t
namespaces_fork(bool isolated)
{
	unsigned long flags =
	    (isolated ? CLONE_NEWPID | CLONE_NEWNS : 0) | SIGCHLD;
	pid_t pid;

	if (isolated && pid_max == 0)
		pid_max = read_number("/proc/sys/kernel/pid_max");
	if (isolated && last_pid_fd < 0)
		last_pid_fd =
		    open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);

	return pid < 0 ? -errno : pid;
}

/*
 * Numbers the session's processes from a random place, half the number space
 * away from where the host is now. Programs that name files in a shared /tmp
 * after their pid would otherwise meet themselves in every other session, and
 * a pid in a log would name some kernel thread of the host. Needs the old
 * /proc to know the host's numbers; a kernel without ns_last_pid counts from
 * 2, which harms nobody.
 */
static long
choose_first_pid(void)
{
	char self[32] = "";
	long max = pid_max;
	uint32_t r;

	if (max < 1024 || readlink("/proc/self", self, sizeof(self) - 1) < 0 ||
	    getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return 0;
	return (atol(self) + max / 4 + (long)(r % (uint32_t)(max / 2))) % max;
}

static void
set_first_pid(long first)
{
	char text[32];

	if (last_pid_fd < 0 || first < 300)
		return;
	snprintf(text, sizeof(text), "%ld", first);
	if (pwrite(last_pid_fd, text, strlen(text), 0) < 0)
		log_debug("ns_last_pid %s was refused", text);
}

int
namespaces_enter(const char **step)
{
	long first = choose_first_pid();

	*step = "making mounts one-way";
	/* In a chroot "/" is no mount, but the one we mount over is. */
	if (mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0 &&
	    (errno != EINVAL || mount(NULL, "/proc", NULL, MS_SLAVE, NULL) < 0))
		return -errno;
	*step = "mounting /proc";
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		NULL) < 0)
		return -errno;
	set_first_pid(first);
	return 0;
}
