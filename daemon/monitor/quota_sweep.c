/*
 * Groups are called execd-PID. The pid alone does not tell whether that execd
 * runs, it may be in another pid namespace: it holds a lock on the directory
 * as long as it does.
 */
#include "quota_sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "log.h"
#include "util.h"

#define PREFIX "execd-"

/* A session's groups lie below it, a command's below that. */
#define LEVELS 2

static int
open_directory(int dir, const char *name)
{
	return openat(
	    dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Calls visit for the directories in a directory. */
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
		quota_remove_children(fd, levels - 1);
	unlinkat(dir, name, AT_REMOVEDIR);
}

void
quota_remove_children(int dir, int levels)
{
	each_directory(dir, remove_group, levels);
}

static bool
is_running(int dir, const char *name)
{
	pid_t pid = atoi(name + strlen(PREFIX));
	_cleanup_close_ int fd = open_directory(dir, name);

	return pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH || fd < 0 ||
	       flock(fd, LOCK_EX | LOCK_NB) < 0;
}

static void
sweep_group(int dir, const char *name, int levels)
{
	if (strncmp(name, PREFIX, strlen(PREFIX)) == 0 &&
	    !is_running(dir, name))
		remove_group(dir, name, levels);
}

void
quota_sweep(const struct cgroup *own)
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (own->dirs[i] >= 0)
			each_directory(own->dirs[i], sweep_group, LEVELS);
}

void
quota_mark_used(const struct cgroup *base)
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		/* Never closed: the lock is the program's. */
		int fd =
		    base->dirs[i] < 0 ? -1 : open_directory(base->dirs[i], ".");

		if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0)
			log_debug("cgroup: no lock: %s", strerror(errno));
	}
}
