/* SPDX-License-Identifier: ISC */
/*
 * User namespaces that contain one user.
 */
#include "userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "util.h"

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

int
userns_map_self(uid_t uid, gid_t gid, const char **step)
{
	_cleanup_close_ int proc =
	    open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*step = "opening its own /proc files";
	return proc < 0 ? -errno : userns_map(proc, uid, gid, step);
}

int
userns_enter_new(bool *none, const char **step)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int err = 0;

	*step = "a new user namespace";
	if (unshare(CLONE_NEWUSER) < 0)
		err = -errno;
	if (none != NULL)
		*none = is_refused(err);
	if (err < 0)
		return err;
	/* The /proc files of a process that cannot be dumped belong to root. */
	*step = "opening its own /proc files";
	if (prctl(PR_SET_DUMPABLE, 1) < 0)
		return -errno;
	err = userns_map_self(uid, gid, step);
	if (err == 0 && prctl(PR_SET_DUMPABLE, 0) < 0)
		err = -errno;
	return err;
}
