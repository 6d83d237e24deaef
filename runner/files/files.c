/* SPDX-License-Identifier: ISC */
/*
 * What the file methods share: errors in the protocol's form, and safe opening.
 */
#include "files.h"

int
reply_file_error(struct request *r, int err)
{
	int code = RPC_INTERNAL;

	if (err == -ENOENT)
		code = RPC_NOT_FOUND;
	else if (err == -EACCES || err == -EPERM || err == -EINVAL)
		code = RPC_MALFORMED;
	return reply_error(
	    r->channel, &r->id, code, "%s (os error %d)", strerror(-err), -err);
}

int
reply_not_a_file(struct request *r, const char *path)
{
	return reply_error(
	    r->channel, &r->id, RPC_MALFORMED, "path `%s` is not a file", path);
}

int
reply_done(struct request *r, int err)
{
	return err < 0 ? reply_file_error(r, err) : reply_empty(r);
}

static int
check_regular(const struct stat *st, int flags)
{
	if (S_ISREG(st->st_mode) ||
	    (S_ISCHR(st->st_mode) && flags & OPEN_DEVICE))
		return 0;
	return S_ISDIR(st->st_mode) && (flags & O_ACCMODE) != O_RDONLY
		   ? -EISDIR
		   : -ENOTSUP;
}

/*
 * The type is checked before opening, because opening a device may already have
 * an effect. It is checked again after opening, because the file may have been
 * replaced. O_NONBLOCK prevents that even such a file blocks.
 */
int
open_regular(int dir, const char *path, int flags, struct stat *st)
{
	int at = flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0;
	int fd, err;

	if (fstatat(dir, path, st, at) == 0) {
		err = check_regular(st, flags);
		if (err < 0)
			return err;
	} else if (errno != ENOENT || !(flags & O_CREAT)) {
		return -errno;
	}
	fd = openat(dir, path,
	    (flags & ~(O_TRUNC | OPEN_DEVICE)) | O_CLOEXEC | O_NONBLOCK |
		O_NOCTTY,
	    0666);
	if (fd < 0)
		return -errno;
	err = fstat(fd, st) < 0 ? -errno : check_regular(st, flags);
	if (err == 0 && flags & O_TRUNC && S_ISREG(st->st_mode) &&
	    ftruncate(fd, 0) < 0)
		err = -errno;
	if (err < 0) {
		close(fd);
		return err;
	}
	return fd;
}

int
read_regular(const char *path, struct buf *b, size_t max)
{
	struct stat st;
	_cleanup_close_ int fd = open_regular(AT_FDCWD, path, O_RDONLY, &st);
	char piece[4096];
	ssize_t n;

	if (fd < 0)
		return fd;
	while ((n = read(fd, piece, sizeof(piece))) > 0) {
		if (b->len + (size_t)n > max)
			return -EFBIG;
		buf_put(b, piece, (size_t)n);
	}
	return n < 0 ? -errno : 0;
}

ssize_t
read_at(int fd, void *p, size_t n, off_t offset)
{
	size_t at = 0;

	while (at < n) {
		char *to = (char *)p + at;
		ssize_t got = offset == AT_POSITION
				  ? read(fd, to, n - at)
				  : pread(fd, to, n - at, offset + (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		at += (size_t)got;
	}
	return (ssize_t)at;
}

int
write_at(int fd, const void *p, size_t n, off_t offset)
{
	size_t at = 0;

	while (at < n) {
		const char *from = (const char *)p + at;
		ssize_t put = offset == AT_POSITION ? write(fd, from, n - at)
						    : pwrite(fd, from, n - at,
							  offset + (off_t)at);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		at += (size_t)put;
	}
	return 0;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void
names_free(struct names *n)
{
	while (n->count > 0)
		free(n->all[--n->count]);
	free(n->all);
	*n = (struct names){ 0 };
}

void
names_add(struct names *n, const char *name)
{
	if (n->count == n->cap) {
		n->cap = n->cap ? n->cap * 2 : 16;
		n->all = xreallocarray(n->all, n->cap, sizeof(char *));
	}
	n->all[n->count++] = xstrdup(name);
}

int
names_read(DIR *d, struct names *n)
{
	struct dirent *e;
	int err;

	while ((errno = 0, e = readdir(d)) != NULL) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		names_add(n, e->d_name);
	}
	err = -errno;
	if (n->count > 1)
		qsort(n->all, n->count, sizeof(char *), compare_names);
	return err;
}

int
names_read_fd(int fd, struct names *n)
{
	int err, copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);

	if (d == NULL) {
		err = -errno;
		if (copy >= 0)
			close(copy);
		return err;
	}
	err = names_read(d, n);
	closedir(d);
	return err;
}

int
descent_enter(struct descent *d, int fd, struct names *names)
{
	struct descent_level *level;
	struct stat st;
	int err;

	if (fstat(fd, &st) < 0) {
		err = -errno;
		close(fd);
		names_free(names);
		return err;
	}
	if (d->depth == d->cap) {
		d->cap = d->cap ? d->cap * 2 : 16;
		d->levels =
		    xreallocarray(d->levels, d->cap, sizeof(d->levels[0]));
	}
	level = &d->levels[d->depth++];
	*level = (struct descent_level){ st.st_dev, st.st_ino, *names, 0 };
	*names = (struct names){ 0 };
	if (d->depth > 1)
		close(d->fd);
	d->fd = fd;
	return 0;
}

int
descent_leave(struct descent *d)
{
	const struct descent_level *up;
	struct stat st;
	int fd = -1, err = 0;

	names_free(&d->levels[--d->depth].names);
	if (d->depth > 0) {
		up = &d->levels[d->depth - 1];
		fd = openat(d->fd, "..", OPEN_PASSED);
		if (fd < 0 || fstat(fd, &st) < 0)
			err = -errno;
		else if (st.st_dev != up->device || st.st_ino != up->inode)
			err = -ESTALE;
	}
	close(d->fd);
	d->fd = fd;
	return err;
}

const char *
descent_next(struct descent *d)
{
	struct descent_level *level = &d->levels[d->depth - 1];

	if (level->next == level->names.count)
		return NULL;
	return level->names.all[level->next++];
}

const char *
descent_name(const struct descent *d)
{
	const struct descent_level *level = &d->levels[d->depth - 1];

	return level->names.all[level->next - 1];
}

void
descent_clear(struct descent *d)
{
	while (d->depth > 0)
		names_free(&d->levels[--d->depth].names);
	if (d->fd >= 0)
		close(d->fd);
	free(d->levels);
}

const char *
file_user_home(void)
{
	const char *home = getenv("HOME");

	return home != NULL && home[0] == '/' ? home : "/";
}

char *
file_codex_home(void)
{
	const char *named = getenv("CODEX_HOME");

	if (named == NULL || named[0] == '\0')
		return xasprintf("%s/.codex", file_user_home());
	return realpath(named, NULL);
}
