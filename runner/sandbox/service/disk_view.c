/* SPDX-License-Identifier: ISC */
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

#include "directory_cache.h"
#include "placeholder.h"
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

static bool
is_dots(const char *name)
{
	return name[0] == '.' &&
	       (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Is there nothing in the directory that st is of? One that cannot be read is
 * not known to be empty. */
static bool
is_empty(const char *path, const struct stat *st)
{
	int fd = open(
	    path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	struct stat now;
	bool empty;

	if (dir == NULL) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while ((errno = 0, e = readdir(dir)) != NULL)
		if (!is_dots(e->d_name))
			break;
	empty = e == NULL && errno == 0 && fstat(fd, &now) == 0 &&
		now.st_dev == st->st_dev && now.st_ino == st->st_ino;
	closedir(dir);
	return empty;
}

static int
lookup(void *owner, const char *path, struct fs_node *node)
{
	bool missing;
	struct stat st;

	*node = (struct fs_node){ .type = FS_MISSING };
	if (lstat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	/* A mask stands for a missing name. Anybody can forge its mode and
	 * time, so only one with nothing in it counts, and what is put into it
	 * later is never seen (view_cover()). The number tells whether it is
	 * still the one that was covered. */
	missing = placeholder_is(&st) &&
		  (!S_ISDIR(st.st_mode) || is_empty(path, &st));
	*node = (struct fs_node){ missing ? FS_MISSING : type_of(st.st_mode),
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

/* Of what patterns are compared with; others look at few directories. */
static struct directory_cache cache;

/* What is read is remembered in *entry, unless that is NULL. 1: visit has seen
 * enough. */
static int
read_names(DIR *dir, bool directories, fs_visit_fn *visit, void *arg,
    struct directory_entry *entry)
{
	struct dirent *e;

	while ((errno = 0, e = readdir(dir)) != NULL) {
		enum fs_type type = type_of_entry(e);

		if (is_dots(e->d_name) ||
		    (directories && type != FS_DIRECTORY && type != FS_MISSING))
			continue;
		if (entry != NULL)
			directory_entry_add(entry, e->d_name, type);
		if (!visit(arg, e->d_name, type))
			return 1;
	}
	return -errno;
}

static int
read_directory(
    const char *path, bool directories, fs_visit_fn *visit, void *arg)
{
	int fd = open(
	    path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct directory_entry *entry;
	int err;

	if (dir == NULL) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	entry = directories ? NULL : directory_entry_new(path, fd);
	err = read_names(dir, directories, visit, arg, entry);
	if (err == 0 && entry != NULL)
		directory_cache_put(&cache, entry);
	else
		directory_entry_free(entry);
	closedir(dir);
	return err < 0 ? err : 0;
}

static int
list(void *owner, const char *path, bool directories, fs_visit_fn *visit,
    void *arg)
{
	const struct directory_entry *known = NULL;
	struct stat st;

	if (!directories && cache.table.count > 0 && lstat(path, &st) == 0)
		known = directory_cache_find(&cache, path, &st);
	if (known == NULL)
		return read_directory(path, directories, visit, arg);
	directory_entry_each(known, visit, arg);
	return 0;
}

const struct fs_view disk_view = {
	.lookup = lookup,
	.read_link = read_link,
	.read_file = read_file,
	.list = list,
};
