/*
 * The disk, as the resolver asks for it. Nothing is opened for reading but
 * directories, and small plain files named .git or commondir; a name that
 * changes its kind meanwhile is an error, never a wait.
 */
#include "disk_view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mask.h"
#include "util.h"

static enum fs_type
type_of(mode_t mode)
{
	if (S_ISREG(mode))
		return FS_FILE;
	if (S_ISDIR(mode))
		return FS_DIRECTORY;
	return S_ISLNK(mode) ? FS_LINK : FS_OTHER;
}

static int
lookup(void *owner, const char *path, struct fs_node *node)
{
	struct stat st;

	*node = (struct fs_node){ .type = FS_MISSING };
	if (lstat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	/* What stands for a missing name, whoever put it there; the number
	 * tells whether it is still the one that was covered. */
	*node =
	    (struct fs_node){ mask_is(&st) ? FS_MISSING : type_of(st.st_mode),
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

static int
list(void *owner, const char *path, bool directories,
    bool (*visit)(void *arg, const char *name), void *arg)
{
	int fd = open(
	    path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int err = 0;

	if (dir == NULL) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while ((errno = 0, e = readdir(dir)) != NULL) {
		bool dots = e->d_name[0] == '.' &&
			    (e->d_name[1] == '\0' ||
				(e->d_name[1] == '.' && e->d_name[2] == '\0'));

		if (directories && e->d_type != DT_DIR &&
		    e->d_type != DT_UNKNOWN)
			continue;
		if (!dots && !visit(arg, e->d_name))
			break;
	}
	if (e == NULL)
		err = -errno;
	closedir(dir);
	return err;
}

const struct fs_view disk_view = {
	.lookup = lookup,
	.read_link = read_link,
	.read_file = read_file,
	.list = list,
};
