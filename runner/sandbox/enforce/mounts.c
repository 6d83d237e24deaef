/* SPDX-License-Identifier: ISC */
#include "mounts.h"

#include <linux/openat2.h>
#include <sys/mount.h>

int
mounts_open(int root, const char *path)
{
	const struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS,
	};
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static uint64_t
attributes(unsigned flags)
{
	return (flags & MOUNTS_NO_SUID ? MOUNT_ATTR_NOSUID : 0) |
	       (flags & MOUNTS_NO_DEV ? MOUNT_ATTR_NODEV : 0) |
	       (flags & MOUNTS_READONLY ? MOUNT_ATTR_RDONLY : 0) |
	       (flags & MOUNTS_NO_EXEC ? MOUNT_ATTR_NOEXEC : 0);
}

static int
set_attributes(int fd, unsigned flags, unsigned recursive)
{
	struct mount_attr attr = {
		.attr_set = attributes(flags),
		.propagation = recursive ? MS_PRIVATE : 0,
	};

	if (mount_setattr(
		fd, "", AT_EMPTY_PATH | recursive, &attr, sizeof(attr)) < 0)
		return -errno;
	return 0;
}

int
mounts_bind(int source, int target, unsigned flags)
{
	_cleanup_close_ int tree = open_tree(source, "",
	    AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int err;

	if (tree < 0)
		return -errno;
	err = set_attributes(tree, flags, AT_RECURSIVE);
	if (err < 0)
		return err;
	if (move_mount(tree, "", target, "",
		MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

void
mounts_close(const int *fds, size_t n)
{
	bool side_by_side = n > 1;

	for (size_t i = 1; i < n; i++)
		side_by_side &= fds[i] == fds[i - 1] + 1;
	if (side_by_side &&
	    syscall(SYS_close_range, fds[0], fds[n - 1], 0) == 0)
		return;
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

int
mounts_seal(int fd, unsigned flags)
{
	return set_attributes(fd, flags, 0);
}

int
mounts_make_private(void)
{
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno
								     : 0;
}
