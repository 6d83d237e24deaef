/* SPDX-License-Identifier: ISC */
/* Helpers for descriptors. */
#include <dirent.h>

#include "base.h"

/* Kernels before 5.9 have no close_range(2). The directory's own descriptor is
 * closed last. */
void
close_from(int lowest)
{
	struct dirent *e;
	DIR *d;

	if (syscall(SYS_close_range, lowest, ~0U, 0) == 0)
		return;
	d = opendir("/proc/self/fd");
	for (int fd = lowest; d == NULL && fd < sysconf(_SC_OPEN_MAX); fd++)
		close(fd);
	while (d != NULL && (e = readdir(d)) != NULL) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] != '.' && fd >= lowest && fd != dirfd(d))
			close(fd);
	}
	if (d != NULL)
		closedir(d);
}

int
set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno
								       : 0;
}

int
move_fd(int fd, int to, bool cloexec)
{
	if (fd == to)
		return fcntl(fd, F_SETFD, cloexec ? FD_CLOEXEC : 0) < 0 ? -errno
									: 0;
	if (dup3(fd, to, cloexec ? O_CLOEXEC : 0) < 0)
		return -errno;
	close(fd);
	return 0;
}

ssize_t
read_whole(int dir, const char *name, char *text, size_t cap)
{
	_cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, cap - 1);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	return n;
}

int
write_whole(int dir, const char *name, const char *text)
{
	_cleanup_close_ int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	ssize_t len = (ssize_t)strlen(text);
	ssize_t n = fd < 0 ? -1 : write(fd, text, (size_t)len);

	/* A short write sets no errno. */
	return n < 0 ? -errno : n == len ? 0 : -EIO;
}

void
cleanup_close_(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}
