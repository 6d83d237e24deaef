/* SPDX-License-Identifier: ISC */
/*
 * The directory of the lists of placeholders.
 */
#include "placeholder_lists.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "util.h"

static int
open_below(int at, const char *name)
{
	int fd;

	if (mkdirat(at, name, 0711) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

static int
take(int fd, uid_t uid)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	/* Somebody else may have put the list there. */
	if ((st.st_uid != uid && st.st_uid != 0) ||
	    (st.st_mode & (S_IWGRP | S_IWOTH)))
		return -EPERM;
	if (fchmod(fd, 0700) < 0 || fchown(fd, uid, (gid_t)-1) < 0)
		return -errno;
	return 0;
}

int
placeholder_lists_open(uid_t uid)
{
	const char *state = getenv("STATE_DIRECTORY");
	bool given = state != NULL && state[0] == '/';
	_cleanup_close_ int place =
	    open(given ? state : "/var/lib", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int own = -1, fd = -1;
	int err;

	if (place < 0)
		return -errno;
	own = given ? fcntl(place, F_DUPFD_CLOEXEC, 0)
		    : open_below(place, "execd");
	fd = own < 0 ? own : open_below(own, "masks");
	err = fd < 0 ? fd : take(fd, uid);
	if (err < 0)
		return err;
	fcntl(fd, F_SETFD, 0);
	return steal_fd(&fd);
}
