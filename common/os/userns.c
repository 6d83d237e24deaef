/* SPDX-License-Identifier: ISC */
/*
 * User namespaces that contain one user.
 */
#include "userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "util.h"

static int
write_file(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t len = (ssize_t)strlen(text);
	ssize_t n = fd < 0 ? -1 : write(fd, text, (size_t)len);

	/* A short write sets no errno. */
	return n < 0 ? -errno : n == len ? 0 : -EIO;
}

static int
map_id(const char *path, unsigned id)
{
	char line[64];

	snprintf(line, sizeof(line), "%u %u 1\n", id, id);
	return write_file(path, line);
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
	*step = "mapping the user";
	err = map_id("/proc/self/uid_map", uid);
	if (err < 0)
		return err;
	*step = "mapping the group";
	err = write_file("/proc/self/setgroups", "deny");
	if (err == 0)
		err = map_id("/proc/self/gid_map", gid);
	if (err == 0 && prctl(PR_SET_DUMPABLE, 0) < 0)
		err = -errno;
	return err;
}
