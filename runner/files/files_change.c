/*
 * fs/move, fs/chmod, fs/symlink: what changes a name or a mode, not content
 * (PROTOCOL.md section 17).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"

/* One step or none: what lies on another file system is not copied. */
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
