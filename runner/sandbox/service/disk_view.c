/* SPDX-License-Identifier: ISC */
/*
 * The disk as the resolver sees it. Only directories and small regular files
 * named .git or commondir are opened for reading. A name that changes its type
 * meanwhile is an error and never blocks.
 */
#include "base.h"

#include <dirent.h>

#include "placeholder.h"
#include "slow_paths.h"

static enum fs_type
type_of(mode_t mode)
{
	if (S_ISREG(mode))
		return FS_FILE;
	if (S_ISDIR(mode))
		return FS_DIRECTORY;
	return S_ISLNK(mode) ? FS_LINK : FS_OTHER;
}

static bool
is_dots(const char *name)
{
	return name[0] == '.' &&
	       (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static int
lookup(void *owner, const char *path, struct fs_node *node)
{
	struct stat st;

	*node = (struct fs_node){ .type = FS_MISSING };
	if (lstat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	/*
	 * A placeholder stands for a missing name. What is put into it later is
	 * never visible (view_cover()). Device and inode tell later whether it
	 * is still the one that was covered.
	 */
	*node = (struct fs_node){ placeholder_is(AT_FDCWD, path, &st)
				      ? FS_MISSING
				      : type_of(st.st_mode),
		st.st_dev, st.st_ino };
	return 0;
}

static int
read_link(void *owner, const char *path, char *text, size_t cap)
{
	ssize_t n = readlink(path, text, cap);

	if (n < 0)
		return -errno;
	if ((size_t)n >= cap)
		return -ENAMETOOLONG;
	text[n] = '\0';
	return 0;
}

static int
read_file(void *owner, const char *path, char *text, size_t cap)
{
	_cleanup_close_ int fd = open(
	    path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	n = read(fd, text, cap - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return 0;
}

static enum fs_type
type_of_entry(const struct dirent *e)
{
	switch (e->d_type) {
	case DT_UNKNOWN:
		return FS_MISSING;
	case DT_DIR:
		return FS_DIRECTORY;
	case DT_REG:
		return FS_FILE;
	case DT_LNK:
		return FS_LINK;
	default:
		return FS_OTHER;
	}
}

/* Returns 0, also if visit stopped, or -errno. */
static int
read_names(DIR *dir, bool directories, fs_visit_fn *visit, void *arg)
{
	struct dirent *e;

	while ((errno = 0, e = readdir(dir)) != NULL) {
		enum fs_type type = type_of_entry(e);

		if (is_dots(e->d_name) ||
		    (directories && type != FS_DIRECTORY && type != FS_MISSING))
			continue;
		if (!visit(arg, e->d_name, type))
			return 0;
	}
	return -errno;
}

static int
list(void *owner, const char *path, bool directories, fs_visit_fn *visit,
    void *arg)
{
	int fd = open(
	    path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int err;

	if (dir == NULL) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	err = read_names(dir, directories, visit, arg);
	closedir(dir);
	return err;
}

/* "36 35 98:0 /root /point options [tags] - type source options" */
static bool
read_mount(const char *line, struct fs_mount *m)
{
	unsigned major, minor;
	int at[4] = { 0 };

	if (sscanf(line, "%d %*d %u:%u %n%*s%n %n%*s%n", &m->id, &major, &minor,
		&at[0], &at[1], &at[2], &at[3]) != 3 ||
	    at[3] == 0)
		return false;
	m->root = xstrndup(line + at[0], (size_t)(at[1] - at[0]));
	m->point = xstrndup(line + at[2], (size_t)(at[3] - at[2]));
	slow_mounts_unescape(m->root);
	slow_mounts_unescape(m->point);
	m->device = (uint64_t)major << 32 | minor;
	return true;
}

static int
mounts(void *owner, struct fs_mount **list, size_t *n)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	size_t cap = 0, room = 0;
	struct fs_mount m;

	if (f == NULL)
		return -errno;
	while (getline(&line, &cap, f) > 0) {
		if (!read_mount(line, &m))
			continue;
		if (*n == room) {
			room = room == 0 ? 64 : 2 * room;
			*list = xreallocarray(*list, room, sizeof(m));
		}
		(*list)[(*n)++] = m;
	}
	fclose(f);
	return *n > 0 ? 0 : -EIO;
}

static int
mount_of(void *owner, const char *path)
{
	struct statx st;

	if (statx(AT_FDCWD, path,
		AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
		STATX_MNT_ID, &st) < 0)
		return -errno;
	return st.stx_mask & STATX_MNT_ID ? (int)st.stx_mnt_id : -ENODATA;
}

const struct fs_view disk_view = {
	.lookup = lookup,
	.read_link = read_link,
	.read_file = read_file,
	.list = list,
	.mounts = mounts,
	.mount_of = mount_of,
};
