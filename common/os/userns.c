/* SPDX-License-Identifier: ISC */
#include "userns.h"

#include <sched.h>

static int
map_id(int proc, const char *name, unsigned id)
{
	char line[64];

	snprintf(line, sizeof(line), "%u %u 1\n", id, id);
	return write_whole(proc, name, line);
}

/* User namespaces are switched off, at their limit, or refused by a policy of
 * the kernel. */
static bool
is_refused(int err)
{
	return err == -EPERM || err == -EACCES || err == -ENOSYS ||
	       err == -EINVAL || err == -ENOSPC || err == -EUSERS;
}

int
userns_map(int proc, uid_t uid, gid_t gid, const char **step)
{
	int err;

	*step = "mapping the user";
	err = map_id(proc, "uid_map", uid);
	if (err < 0)
		return err;
	*step = "mapping the group";
	err = write_whole(proc, "setgroups", "deny");
	return err < 0 ? err : map_id(proc, "gid_map", gid);
}

/*
 * The /proc files of a process that cannot be dumped belong to root, so whoever
 * writes its own maps can be looked into by its user's other processes. This
 * process does nothing else and has nothing open. Exits with an errno if there
 * is no namespace, and with that and MAP_FAILED_BIT if it has no maps.
 * Otherwise it stops, and waits for the end.
 */
#define MAP_FAILED_BIT 0x80

static void __attribute__((noreturn)) hold_new(pid_t parent)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	const char *step;
	int proc, err;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(ESRCH);
	syscall(SYS_close_range, 0, ~0U, 0);
	if (unshare(CLONE_NEWUSER) < 0)
		_exit(errno);
	if (prctl(PR_SET_DUMPABLE, 1) < 0)
		_exit(errno | MAP_FAILED_BIT);
	proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = proc < 0 ? -errno : userns_map(proc, uid, gid, &step);
	if (err < 0)
		_exit(-err | MAP_FAILED_BIT);
	for (;;)
		raise(SIGSTOP);
}

/* Enters the namespace of that process, which has stopped or ended. */
static int
enter(pid_t holder, bool *none, const char **step)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, holder, 0);
	siginfo_t info = { .si_pid = 0 };
	int err;

	while (waitid(P_PID, (id_t)holder, &info,
		   WSTOPPED | WEXITED | WNOWAIT) < 0)
		if (errno != EINTR)
			return -errno;
	if (info.si_code == CLD_STOPPED)
		return setns(pidfd, CLONE_NEWUSER) < 0 ? -errno : 0;
	if (info.si_code != CLD_EXITED)
		return -EIO;
	err = -(info.si_status & ~MAP_FAILED_BIT);
	if (info.si_status & MAP_FAILED_BIT)
		*step = "mapping the user in a new user namespace";
	else if (none != NULL)
		*none = is_refused(err);
	return err;
}

int
userns_enter_new(bool *none, const char **step)
{
	pid_t parent = getpid(), holder = fork();
	int err;

	if (holder == 0)
		hold_new(parent);
	*step = "a new user namespace";
	if (none != NULL)
		*none = false;
	if (holder < 0)
		return -errno;
	err = enter(holder, none, step);
	kill(holder, SIGKILL);
	while (waitpid(holder, NULL, 0) < 0 && errno == EINTR)
		continue;
	return err;
}
