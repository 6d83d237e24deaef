/* SPDX-License-Identifier: ISC */
/*
 * Helpers for descriptors.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util.h"

/* For kernels before 5.9. The directory's own descriptor is closed last. */
static void
close_from_proc(int lowest)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	if (d == NULL) {
		for (int fd = lowest; fd < sysconf(_SC_OPEN_MAX); fd++)
			close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] != '.' && fd >= lowest && fd != dirfd(d))
			close(fd);
	}
	closedir(d);
}

void
close_from(int lowest)
{
	if (syscall(SYS_close_range, lowest, ~0U, 0) < 0)
		close_from_proc(lowest);
}

int
set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
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

void
cleanup_close_(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}
