/* SPDX-License-Identifier: ISC */
/*
 * Groups are called execd-PID. The pid alone does not tell whether that execd
 * still runs, because it may be in another pid namespace. Therefore an execd
 * holds a lock on its directory as long as it runs. An execd of another
 * namespace may have the same pid; the second one's group is called
 * execd-PID.1.
 */
#include "session_cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util.h"

#define PREFIX "execd-"

/* The groups of a session lie below it, and those of a command below these. */
#define LEVELS 2

static int
open_directory(int dir, const char *name)
{
	return openat(
	    dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Calls visit for each directory in a directory. */
static void
each_directory(
    int dir, void (*visit)(int dir, const char *name, int arg), int arg)
{
	int fd = open_directory(dir, ".");
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL)
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			visit(dir, e->d_name, arg);
	closedir(d);
}

static void
remove_group(int dir, const char *name, int levels)
{
	_cleanup_close_ int fd = levels > 0 ? open_directory(dir, name) : -1;

	if (fd >= 0)
		each_directory(fd, remove_group, levels - 1);
	unlinkat(dir, name, AT_REMOVEDIR);
}

int
session_cgroup_remove(const struct cgroup *parent, const char *name)
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (parent->dirs[i] >= 0)
			remove_group(parent->dirs[i], name, 1);
	/* Says what could not be removed. */
	return cgroup_remove(parent, name);
}

/* An execd that has just made its group may not have the lock yet. */
static bool
is_running(const char *name)
{
	pid_t pid = atoi(name + strlen(PREFIX));

	return pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH;
}

/* Whoever uses a group or removes it holds its lock. */
static void
cleanup_group(int dir, const char *name, int levels)
{
	_cleanup_close_ int fd = -1;

	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || is_running(name))
		return;
	fd = open_directory(dir, name);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		remove_group(dir, name, levels);
}

void
session_cgroup_cleanup(const struct cgroup *own)
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (own->dirs[i] >= 0)
			each_directory(own->dirs[i], cleanup_group, LEVELS);
}

/* The directory may have been removed between the open and the lock. */
static int
lock_group(int parent, const char *name, int fd)
{
	struct stat ours, there;

	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -EEXIST;
	if (fstat(fd, &ours) == 0 &&
	    fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	    ours.st_ino == there.st_ino)
		return 0;
	return -ENOENT;
}

int
session_cgroup_claim(
    const struct cgroup *own, const char *name, struct cgroup *base)
{
	int err = cgroup_make(own, name, base);

	for (int i = 0; err == 0 && i < CGROUP_HIERARCHIES; i++)
		if (base->dirs[i] >= 0)
			err = lock_group(own->dirs[i], name, base->dirs[i]);
	if (err < 0)
		cgroup_close(base);
	return err;
}
