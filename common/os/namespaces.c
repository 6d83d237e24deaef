/* SPDX-License-Identifier: ISC */
/*
 * Pid and mount namespaces for a session (pid_namespaces(7),
 * mount_namespaces(7)).
 */
#include "namespaces.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/random.h>

static long
read_number(const char *path)
{
	char text[32];
	ssize_t n = read_whole(AT_FDCWD, path, text, sizeof(text));

	return n <= 0 ? n : atol(text);
}

/* The parent's /proc/sys/kernel/ns_last_pid, opened once for all its children.
 * The kernel applies a write to the pid namespace of the writer. */
static int last_pid_fd = -1;

/* Read by the parent. When it is read from inside a namespace, the kernel keeps
 * an entry for each namespace that ever did so, and searches all of them. */
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
 * Chooses a random number at which the pids of the session begin, far from the
 * pids that the host uses now. Otherwise programs that name files in a shared
 * /tmp after their pid would meet the same names in every session, and a pid in
 * a log would be that of some kernel thread of the host. The host's pids are
 * read from the old /proc, before it is mounted over. On a kernel without
 * ns_last_pid the pids begin at 2, which is harmless.
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
	/* In a chroot "/" may not be a mount; then only /proc is made
	 * one-way. */
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
