/* SPDX-License-Identifier: ISC */
/* Operations on mounts by descriptor. */
#include "mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mounts_classic.h"
#include "util.h"

/*
 * Set if the kernel has no openat2(2), as before Linux 5.6. Paths are then
 * walked name by name.
 */
static bool walk;

/*
 * Like openat2(2) here: a link on the way fails, because it is not a directory.
 * ".." is refused.
 */
static int
walk_names(int root, const char *path)
{
	int at = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	while (at >= 0) {
		char name[NAME_MAX + 1];
		size_t n;
		int fd;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (n == 0)
			return at;
		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		fd = n > NAME_MAX || strcmp(name, "..") == 0
			 ? -EINVAL
			 : openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd == -1)
			fd = -errno;
		close(at);
		if (fd < 0)
			return fd;
		at = fd;
		path += n;
	}
	return -errno;
}

int
mounts_open(int root, const char *path)
{
	const struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS,
	};
	int fd = walk
		     ? -1
		     : (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	if (!walk && fd < 0 && errno == ENOSYS)
		walk = true;
	if (walk)
		return walk_names(root, path);
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

static int
bind_tree(int source, int target, unsigned flags)
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

/*
 * Set if the kernel lacks one of the calls, as before Linux 5.12. Then none of
 * them is used.
 */
static bool classic;

int
mounts_bind(int source, int target, unsigned flags)
{
	int err = classic ? -ENOSYS : bind_tree(source, target, flags);

	if (err != -ENOSYS)
		return err;
	classic = true;
	return mounts_classic_bind(source, target, flags);
}

int
mounts_seal(int fd, unsigned flags)
{
	int err = classic ? -ENOSYS : set_attributes(fd, flags, 0);

	if (err != -ENOSYS)
		return err;
	classic = true;
	return mounts_classic_seal(fd, flags);
}

int
mounts_make_private(void)
{
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno
								     : 0;
}
