/* SPDX-License-Identifier: ISC */
#include "trusted.h"

#include <sys/sendfile.h>

static int
refuse(int err, const char *text, char *why, size_t len)
{
	snprintf(why, len, "%s", text);
	return err;
}

/* O_NONBLOCK, so that a fifo in its place cannot stop us. */
int
trusted_open(const char *path, struct stat *st, char *why, size_t len)
{
	_cleanup_close_ int fd =
	    open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, st) < 0) {
		int err = -errno;

		return refuse(err, strerror(-err), why, len);
	}
	if (!S_ISREG(st->st_mode))
		return refuse(-EINVAL, "is not a plain file", why, len);
	if (st->st_mode & S_IWOTH)
		return refuse(-EINVAL, "can be written by everybody", why, len);
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return refuse(-EINVAL, "belongs to another user", why, len);
	return steal_fd(&fd);
}

int
trusted_record(int fd, char *why, size_t len)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISCHR(st.st_mode))
		return 0;
	if (!S_ISREG(st.st_mode))
		return refuse(-EINVAL, "is not a plain file", why, len);
	if (st.st_uid != geteuid())
		return refuse(-EINVAL, "belongs to another user", why, len);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return refuse(-EINVAL, "can be written by others", why, len);
	return st.st_nlink == 1
		   ? 0
		   : refuse(-EINVAL, "has a second name", why, len);
}

int
trusted_directory(const char *path, char *why, size_t len)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st = { 0 };
	int err = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;

	if (err == 0 && !S_ISDIR(st.st_mode))
		return refuse(-EINVAL, "is no directory", why, len);
	if (err == 0 && st.st_uid != 0 && st.st_uid != geteuid())
		return refuse(-EINVAL, "belongs to another user", why, len);
	if (err == 0 && st.st_mode & (S_IWGRP | S_IWOTH))
		return refuse(-EINVAL, "can be written by others", why, len);
	if (err == 0 && faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) < 0)
		err = -errno;
	if (err == 0)
		return steal_fd(&fd);
	snprintf(why, len, "%s", strerror(-err));
	return err;
}

int
trusted_copy(int fd, int copy, size_t limit)
{
	ssize_t n = 1;

	while (limit > 0 && n > 0) {
		n = sendfile(copy, fd, NULL, limit);
		limit -= n > 0 ? (size_t)n : 0;
	}
	return n < 0 || fcntl(copy, F_ADD_SEALS,
			    F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW |
				F_SEAL_WRITE) < 0
		   ? -errno
		   : 0;
}
