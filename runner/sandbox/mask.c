/*
 * Masks for missing names.
 */
#include "mask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "mounts.h"
#include "util.h"

#define MARK_SECONDS 1

/* Somebody may take a mask away between our finding and locking it. */
#define TRIES	 16
#define PAUSE_NS 1000000

bool
mask_is(const struct stat *st)
{
	mode_t mode = S_ISDIR(st->st_mode) ? S_IFDIR | 0555 : S_IFREG | 0600;

	/* A directory is covered whoever made it; a file of somebody else's
	 * could not be opened to be locked. */
	return st->st_mode == mode &&
	       (S_ISDIR(st->st_mode) || st->st_uid == geteuid()) &&
	       st->st_mtim.tv_sec == MARK_SECONDS &&
	       (S_ISDIR(st->st_mode) || st->st_size == 0);
}

/* The directory it is in, no link on the way; *name points into path. */
static int
open_parent(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *parent = xstrndup(path, (size_t)(slash - path));
	_cleanup_close_ int root = open("/", O_PATH | O_CLOEXEC);

	*name = slash + 1;
	if (root < 0)
		return -errno;
	return mounts_open(root, *parent ? parent : "/");
}

static int
open_it(int parent, const char *name)
{
	int fd = openat(parent, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Marked while it has another name: under its own it is never seen half made.
 */
static int
make(int parent, const char *name, bool directory)
{
	const struct timespec times[2] = { { .tv_sec = MARK_SECONDS },
		{ .tv_sec = MARK_SECONDS } };
	_cleanup_close_ int fd = -1;
	char temporary[40];
	uint64_t r;
	int err = 0;

	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return -EIO;
	snprintf(temporary, sizeof(temporary), ".execd-mask-%016llx",
	    (unsigned long long)r);
	if (directory)
		err = mkdirat(parent, temporary, 0555) < 0 ? -errno : 0;
	else if ((fd = openat(parent, temporary,
		      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		      0600)) < 0)
		err = -errno;
	if (err < 0)
		return err;
	if (fchmodat(parent, temporary, directory ? 0555 : 0600, 0) < 0 ||
	    utimensat(parent, temporary, times, AT_SYMLINK_NOFOLLOW) < 0 ||
	    renameat2(parent, temporary, parent, name, RENAME_NOREPLACE) < 0)
		err = -errno;
	if (err < 0)
		unlinkat(parent, temporary, directory ? AT_REMOVEDIR : 0);
	return err;
}

/* Not ours, and closed to us: then it is closed to commands as well. */
static bool
is_closed(int parent, int err)
{
	struct stat st;

	if (err == -EROFS)
		return true;
	return (err == -EACCES || err == -EPERM) && fstat(parent, &st) == 0 &&
	       st.st_uid != geteuid();
}

static bool
is_there(int parent, const char *name, const struct stat *st)
{
	struct stat now;

	return fstatat(parent, name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       now.st_dev == st->st_dev && now.st_ino == st->st_ino;
}

/* 1: again, it went away meanwhile, or somebody is about to take it away.
 * Whatever is there by now, a mask or somebody's own, is covered. */
static int
lock(struct mask *m, int parent, const char *name)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	_cleanup_close_ int fd = open_it(parent, name);
	struct stat st;

	if (fd == -ENOENT)
		return 1;
	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_SH | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return -errno;
		nanosleep(&pause, NULL);
		return 1;
	}
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!is_there(parent, name, &st))
		return 1;
	m->directory = S_ISDIR(st.st_mode);
	m->seen = (struct fs_node){ m->directory ? FS_DIRECTORY : FS_FILE,
		st.st_dev, st.st_ino };
	m->fd = steal_fd(&fd);
	return 0;
}

int
mask_take(struct mask *m)
{
	const char *name;
	_cleanup_close_ int parent = open_parent(m->path, &name);
	bool made = false;
	int err = 1;

	if (parent < 0)
		return parent;
	for (int i = 0; i < TRIES && err == 1; i++) {
		err = make(parent, name, m->directory);
		if (err < 0 && err != -EEXIST)
			return is_closed(parent, err) ? 0 : err;
		made = err == 0;
		err = lock(m, parent, name);
	}
	/* Where there are no locks, nobody shares it either. */
	if (made && err < 0 && err != -EBUSY)
		unlinkat(parent, name, m->directory ? AT_REMOVEDIR : 0);
	return err == 1 ? -EBUSY : err;
}

static void
remove_unused(int fd, int parent, const char *name)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 ||
	    !mask_is(&st) || !is_there(parent, name, &st))
		return;
	unlinkat(parent, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
}

void
mask_leave(struct mask *m)
{
	_cleanup_close_ int parent = -1;
	const char *name;

	if (m->fd < 0)
		return;
	parent = open_parent(m->path, &name);
	if (parent >= 0)
		remove_unused(m->fd, parent, name);
	close(m->fd);
	m->fd = -1;
}

void
mask_sweep(const char *path)
{
	const char *name;
	_cleanup_close_ int parent = open_parent(path, &name);
	_cleanup_close_ int fd = parent < 0 ? parent : open_it(parent, name);

	if (fd >= 0)
		remove_unused(fd, parent, name);
}
