/* SPDX-License-Identifier: ISC */
/*
 * Where control sockets lie by default.
 */
#include "ctl_path.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "util.h"

/* the most entries of the directory that are checked */
#define ENTRIES_MAX 4096

int
ctl_directory(char directory[CTL_DIRECTORY_MAX], bool root)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int n;

	if (root)
		n = snprintf(
		    directory, CTL_DIRECTORY_MAX, "%s", CTL_ROOT_DIRECTORY);
	else if (runtime != NULL && runtime[0] == '/' && runtime[1] != '/')
		n = snprintf(directory, CTL_DIRECTORY_MAX, "%s/execd", runtime);
	else
		n = snprintf(directory, CTL_DIRECTORY_MAX, "/tmp/execd-%u",
		    (unsigned)geteuid());
	return n >= CTL_DIRECTORY_MAX ? -ENAMETOOLONG : 0;
}

int
ctl_directory_check(const char *directory)
{
	struct stat st;

	if (lstat(directory, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if ((st.st_uid != 0 && st.st_uid != geteuid()) ||
	    st.st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM;
	return 0;
}

/* Tells whether nobody listens on the socket and the process in its name is
 * gone. Both are checked: an execd that has bound and does not listen yet is
 * alive, and the number of an execd in another pid namespace means nothing
 * here. */
static bool
is_stale(const char *path, const char *name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;
	char *end;
	long pid;

	errno = 0;
	pid = strtol(name + strlen(CTL_NAME_PREFIX), &end, 10);
	if (*end != '\0' || errno != 0 || pid <= 0 ||
	    kill((pid_t)pid, 0) == 0 || errno != ESRCH)
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	return fd >= 0 &&
	       connect(fd, (const struct sockaddr *)&un, sizeof(un)) < 0 &&
	       errno == ECONNREFUSED;
}

void
ctl_directory_tidy(const char *directory)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;

	for (int i = 0; dir != NULL && i < ENTRIES_MAX; i++) {
		_cleanup_free_ char *path = NULL;

		entry = readdir(dir);
		if (entry == NULL)
			break;
		if (strncmp(entry->d_name, CTL_NAME_PREFIX,
			strlen(CTL_NAME_PREFIX)) != 0)
			continue;
		path = xasprintf("%s/%s", directory, entry->d_name);
		if (strlen(path) < CTL_PATH_MAX &&
		    is_stale(path, entry->d_name))
			unlink(path);
	}
	if (dir != NULL)
		closedir(dir);
}

int
ctl_directory_make(const char *directory)
{
	int err;

	/* Another execd may make it at the same moment. */
	if (mkdir(directory, 0700) < 0 && errno != EEXIST)
		return -errno;
	err = ctl_directory_check(directory);
	/* The user, or the umask, left it open to others. */
	if (err == 0)
		chmod(directory, 0700);
	return err;
}
