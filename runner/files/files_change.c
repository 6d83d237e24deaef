/* SPDX-License-Identifier: ISC */
/*
 * fs/move, fs/chmod, fs/symlink, fs/setTimes: they change a name, a mode or a
 * time, but no content (doc/protocol.md section 17).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"

/* Moves in one step or not at all; nothing is copied to another file system. */
int
file_fs_move(struct request *r, const struct fs_params *p)
{
	unsigned flags = p->overwrite ? 0 : RENAME_NOREPLACE;

	if (renameat2(AT_FDCWD, p->path.path, AT_FDCWD, p->destination.path,
		flags) < 0)
		return reply_file_error(r, -errno);
	return reply_empty(r);
}

int
file_fs_chmod(struct request *r, const struct fs_params *p)
{
	return reply_done(r, chmod(p->path.path, p->mode) < 0 ? -errno : 0);
}

int
file_fs_symlink(struct request *r, const struct fs_params *p)
{
	_cleanup_free_ char *target = xstrndup(p->target.ptr, p->target.len);

	return reply_done(r, symlink(target, p->path.path) < 0 ? -errno : 0);
}

/*
 * A file system that cannot store a time silently stores another one. Some
 * count in steps of two seconds.
 */
static int
check_time(const char *path, time_t wanted)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	return llabs((long long)st.st_mtim.tv_sec - (long long)wanted) > 2
		   ? -ERANGE
		   : 0;
}

int
file_fs_set_times(struct request *r, const struct fs_params *p)
{
	const struct timespec times[] = {
		{ .tv_nsec = UTIME_OMIT },
		{ .tv_sec = (time_t)(p->modified_ms / 1000),
		    .tv_nsec = (long)(p->modified_ms % 1000) * 1000000 },
	};

	if (utimensat(AT_FDCWD, p->path.path, times, 0) < 0)
		return reply_file_error(r, -errno);
	return reply_done(r, check_time(p->path.path, times[1].tv_sec));
}
