/* SPDX-License-Identifier: ISC */
#include "file_replace.h"

#include <sys/xattr.h>

#define COPY_BYTES     (1u << 20)
#define PERMISSIONS    0777
#define TIME_SLACK_SEC 2 /* some file systems count in steps of that */

/* --- Content ------------------------------------------------------------ */

static int
write_piece(int out, const char *data, size_t n, off_t at)
{
	while (n > 0) {
		ssize_t put = pwrite(out, data, n, at);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		data += put;
		at += put;
		n -= (size_t)put;
	}
	return 0;
}

/*
 * Copies one piece of data; between pieces are holes. If the file ends within
 * the piece, *end is set to its end.
 */
static int
copy_piece(int in, int out, off_t from, off_t to, char *buffer, off_t *end)
{
	while (from < to) {
		size_t want = to - from < (off_t)COPY_BYTES
				  ? (size_t)(to - from)
				  : COPY_BYTES;
		ssize_t n = pread(in, buffer, want, from);
		int err;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0) {
			*end = from;
			break;
		}
		err = write_piece(out, buffer, (size_t)n, from);
		if (err < 0)
			return err;
		from += n;
	}
	return 0;
}

/*
 * Finds the next data after the last hole. Returns 1, 0 if there is none, or
 * -errno.
 */
static int
next_data(int in, off_t *data, off_t *hole)
{
	*data = lseek(in, *hole, SEEK_DATA);
	if (*data >= 0) {
		*hole = lseek(in, *data, SEEK_HOLE);
		if (*hole >= 0)
			return 1;
	}
	return errno == ENXIO ? 0 : -errno;
}

int
file_copy_content(int in, int out, off_t size)
{
	_cleanup_free_ char *buffer = xmalloc(COPY_BYTES);
	off_t data, hole = 0, end = size;
	struct stat now;
	int err = 0;

	while (
	    err == 0 && hole < end && (err = next_data(in, &data, &hole)) > 0)
		err = copy_piece(
		    in, out, data, hole < end ? hole : end, buffer, &end);
	if (err < 0)
		return err;
	/* There may be a hole at the end. */
	if (fstat(in, &now) == 0 && now.st_size < end)
		end = now.st_size;
	return ftruncate(out, end) < 0 ? -errno : 0;
}

/* --- What a file has besides content -------------------------------------- */

bool
file_has_attributes(int fd, const char *path)
{
	char few[1024];
	_cleanup_free_ char *many = NULL;
	char *names = few;
	ssize_t n = fd >= 0 ? flistxattr(fd, few, sizeof(few))
			    : listxattr(path, few, sizeof(few));

	if (n < 0 && errno == ERANGE) {
		names = many = xmalloc(XATTR_LIST_MAX);
		n = fd >= 0 ? flistxattr(fd, many, XATTR_LIST_MAX)
			    : listxattr(path, many, XATTR_LIST_MAX);
	}
	/* Labels of the system (security.selinux) are new for each file. */
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1)
		if (strncmp(names + at, "security.", strlen("security.")) != 0)
			return true;
	return false;
}

/* Returns what a rename would lose of the old file, as a text, or NULL. */
static const char *
lost_by_rename(int in, const char *path, const struct stat *old)
{
	struct stat new;

	if (fstat(in, &new) < 0)
		return "its owner and group";
	if (old->st_nlink > 1)
		return "its hard links";
	if (file_has_attributes(-1, path) || file_has_attributes(in, NULL))
		return "its access control list or extended attributes";
	if ((new.st_uid != old->st_uid || new.st_gid != old->st_gid) &&
	    fchown(in, old->st_uid, old->st_gid) < 0)
		return "its owner or group";
	return NULL;
}

/* --- Replacing ------------------------------------------------------------ */

static int
open_same(const char *path, const struct stat *old)
{
	int fd = open(
	    path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat now;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &now) == 0 && now.st_dev == old->st_dev &&
	    now.st_ino == old->st_ino)
		return fd;
	close(fd);
	return -ESTALE;
}

/* Whoever may write to a file may not set its time, if somebody else owns it.
 */
static void
take_time(int out, const struct stat *new, const char **unkept)
{
	const struct timespec times[] = {
		{ .tv_nsec = UTIME_OMIT },
		new->st_mtim,
	};
	struct stat now;

	if (futimens(out, times) < 0 && fstat(out, &now) == 0 &&
	    llabs((long long)now.st_mtim.tv_sec - new->st_mtim.tv_sec) >
		TIME_SLACK_SEC)
		*unkept = "its time of modification";
}

/* The mode is never wider than the old one and the new one while the content
 * changes. It loses bits that make a program run as somebody else. */
static int
write_in_place(int in, const char *path, const struct stat *old, mode_t mode,
    const char **unkept)
{
	_cleanup_close_ int out = open_same(path, old);
	bool chmods = (old->st_mode & 07777) != mode;
	struct stat new;
	int err;

	if (out < 0)
		return out;
	if (fstat(in, &new) < 0 ||
	    (chmods && fchmod(out, mode & old->st_mode) < 0) ||
	    ftruncate(out, 0) < 0)
		return -errno;
	err = file_copy_content(in, out, new.st_size);
	if (err == 0 && chmods && fchmod(out, mode) < 0)
		err = -errno;
	if (err == 0)
		take_time(out, &new, unkept);
	if (close(steal_fd(&out)) < 0 && err == 0)
		err = -errno;
	return err;
}

static int
rename_with_mode(int in, const char *temporary, const char *path, mode_t mode)
{
	if (fchmod(in, mode) < 0 || rename(temporary, path) < 0)
		return -errno;
	return 0;
}

/* If the content cannot be copied into the old file, the new one takes its
 * place after all: it is complete. */
static int
replace_file(int in, const char *temporary, const char *path,
    const struct stat *old, mode_t mode, const char **unkept)
{
	const char *lost = lost_by_rename(in, path, old);
	int err;

	if (lost != NULL && write_in_place(in, path, old, mode, unkept) == 0) {
		unlink(temporary);
		return 0;
	}
	err = rename_with_mode(in, temporary, path, mode);
	if (err == 0)
		*unkept = lost;
	return err;
}

int
file_replace(int in, const char *temporary, const char *path, int mode,
    bool sets, const char **unkept)
{
	struct stat old;
	bool there = lstat(path, &old) == 0;

	*unkept = NULL;
	if (there && S_ISREG(old.st_mode))
		return replace_file(in, temporary, path, &old,
		    (sets ? (mode_t)mode : old.st_mode) & PERMISSIONS, unkept);
	if (there && !S_ISLNK(old.st_mode) && !S_ISDIR(old.st_mode))
		return -ENOTSUP;
	if (mode == FILE_NO_MODE)
		return rename(temporary, path) < 0 ? -errno : 0;
	return rename_with_mode(
	    in, temporary, path, (mode_t)mode & PERMISSIONS);
}
