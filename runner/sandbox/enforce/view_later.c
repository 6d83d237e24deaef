/* SPDX-License-Identifier: ISC */
/*
 * The finished view: covers placeholders, and checks that everything is still
 * mounted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "mounts.h"
#include "path.h"
#include "util.h"
#include "view_parts.h"

#define HARDENED (MOUNTS_NO_SUID | MOUNTS_NO_DEV)

bool
view_is_same(int fd, const struct fs_node *seen)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == seen->device &&
	       st.st_ino == seen->inode;
}

/*
 * A grant in /dev gets what every view has there. The host's devices would not
 * work in a view.
 */
bool
view_is_dev_grant(const struct plan_mount *m)
{
	return m->kind != PLAN_DENY_DIRECTORY && m->kind != PLAN_DENY_FILE &&
	       path_lies_in(m->path, "/dev");
}

static bool
is_same_file(int a, int b)
{
	struct stat one, other;

	return fstat(a, &one) == 0 && fstat(b, &other) == 0 &&
	       one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/*
 * A view without /dev has nothing empty to mount, so the placeholder is mounted
 * on itself, read-only.
 */
static int
cover_itself(int fd)
{
	struct statvfs fs;

	if (fstatvfs(fd, &fs) < 0)
		return -errno;
	/*
	 * It is still covered from an earlier time, because another session
	 * uses it, too.
	 */
	if (fs.f_flag & ST_RDONLY)
		return 0;
	return mounts_bind(fd, fd, HARDENED | MOUNTS_READONLY);
}

/*
 * Mounts something empty over a placeholder. The placeholder itself is never
 * shown: its mode and time can be forged, and what somebody puts into it later
 * must not be visible. A placeholder that is still covered is left as it is.
 */
static int
cover(int root, const struct plan_mount *m)
{
	bool directory = m->seen.type == FS_DIRECTORY;
	_cleanup_close_ int fd = mounts_open(root, m->path);
	_cleanup_close_ int nothing = mounts_open(
	    root, directory ? VIEW_EMPTY_DIRECTORY : VIEW_EMPTY_BLANK);

	/* A placeholder in the host's /dev: the view's /dev is another one. */
	if (fd == -ENOENT && view_is_dev_grant(m))
		return 0;
	if (fd < 0)
		return fd;
	if (nothing < 0 && nothing != -ENOENT)
		return nothing;
	if (nothing >= 0 && is_same_file(fd, nothing))
		return 0;
	if (!view_is_same(fd, &m->seen))
		return -ESTALE;
	if (nothing < 0)
		return cover_itself(fd);
	return mounts_bind(nothing, fd, HARDENED | MOUNTS_READONLY);
}

int
view_cover(const struct plan *placeholders, char *step)
{
	_cleanup_close_ int root = open("/", O_PATH | O_CLOEXEC);
	int err = root < 0 ? -errno : 0;

	for (size_t i = 0; i < placeholders->count && err == 0; i++) {
		snprintf(step, VIEW_STEP_MAX, "covering %.200s",
		    placeholders->mounts[i].path);
		err = cover(root, &placeholders->mounts[i]);
	}
	return err;
}

/* Tells whether the path is a mount point, and of what the resolver saw. */
static bool
is_mounted(const struct plan_mount *m)
{
	bool ours = m->kind == PLAN_DENY_DIRECTORY ||
		    m->kind == PLAN_DENY_FILE || m->kind == PLAN_PRIVATE;
	struct statx st;

	if (statx(AT_FDCWD, m->path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		STATX_INO, &st) < 0)
		return false;
	if (st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT &&
	    !(st.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return false;
	return ours || (st.stx_ino == m->seen.inode &&
			   makedev(st.stx_dev_major, st.stx_dev_minor) ==
			       m->seen.device);
}

int
view_check(const struct plan *plan, char *step)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_mount *m = &plan->mounts[i];

		if (m->seen.type == FS_LINK || view_is_dev_grant(m) ||
		    is_mounted(m))
			continue;
		snprintf(step, VIEW_STEP_MAX, "%.200s was replaced", m->path);
		return -ESTALE;
	}
	return 0;
}

int
view_open_host(const struct plan_mount *m)
{
	_cleanup_close_ int fd = mounts_open(AT_FDCWD, m->path);

	if (fd < 0)
		return fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR ? -ESTALE
								       : fd;
	return view_is_same(fd, &m->seen) ? steal_fd(&fd) : -ESTALE;
}

int
view_check_host(const struct plan *plan, char *step)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_mount *m = &plan->mounts[i];
		_cleanup_close_ int fd = view_open_host(m);

		if (fd >= 0)
			continue;
		snprintf(step, VIEW_STEP_MAX, "%.200s was replaced", m->path);
		return -ESTALE;
	}
	return 0;
}
