/*
 * fs/copy: files with their permission bits, links as links, directories
 * merged (PROTOCOL.md section 10).
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"

#define COPY_BYTES (1u << 20)

/* The refusals this method words itself; below any errno. */
enum {
	COPY_NEEDS_RECURSIVE = -10000,
	COPY_INTO_ITSELF,
	COPY_UNSUPPORTED,
	COPY_NOT_A_FILE
};

/* One piece of data; what lies between pieces are holes. */
static int
copy_piece(int in, int out, off_t from, off_t to, char *buffer)
{
	while (from < to) {
		size_t want = to - from < (off_t)COPY_BYTES
				  ? (size_t)(to - from)
				  : COPY_BYTES;
		ssize_t n = pread(in, buffer, want, from);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		for (ssize_t at = 0; at < n;) {
			ssize_t w = pwrite(
			    out, buffer + at, (size_t)(n - at), from + at);

			if (w < 0 && errno != EINTR)
				return -errno;
			at += w > 0 ? w : 0;
		}
		from += n;
	}
	return 0;
}

/* Files without a size (/proc) are read to their end. */
static int
copy_stream(int in, int out, char *buffer)
{
	ssize_t n;

	while ((n = read(in, buffer, COPY_BYTES)) != 0) {
		int err = n < 0 ? -errno : write_all(out, buffer, (size_t)n);

		if (err == -EINTR)
			continue;
		if (err < 0)
			return err;
	}
	return 0;
}

static int
copy_content(int in, int out, off_t size)
{
	_cleanup_free_ char *buffer = xmalloc(COPY_BYTES);
	off_t data = 0, hole;
	int err = 0;

	if (size == 0)
		return copy_stream(in, out, buffer);
	while (err == 0 && (data = lseek(in, data, SEEK_DATA)) >= 0) {
		hole = lseek(in, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		err = copy_piece(in, out, data, hole, buffer);
		data = hole;
	}
	if (err == 0 && errno != ENXIO)
		err = -errno;
	/* A hole at the end. */
	if (err == 0 && ftruncate(out, size) < 0)
		err = -errno;
	return err;
}

static int
open_source(const char *path, struct stat *st)
{
	int fd = open(
	    path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode)) {
		close(fd);
		return COPY_NOT_A_FILE;
	}
	return fd;
}

static bool
is_same_file(const struct stat *a, const char *path)
{
	struct stat b;

	return stat(path, &b) == 0 && a->st_dev == b.st_dev &&
	       a->st_ino == b.st_ino;
}

static int
copy_file(const char *from, const char *to)
{
	_cleanup_close_ int in = -1, out = -1;
	struct stat source, target;
	int err;

	in = open_source(from, &source);
	if (in < 0)
		return in;
	/* Also through links: it would be emptied first (quirk Q2). */
	if (is_same_file(&source, to))
		return 0;
	out = open_regular(to, O_WRONLY | O_CREAT | O_TRUNC, &target);
	if (out < 0)
		return out == -ENOTSUP ? COPY_NOT_A_FILE : out;
	err = copy_content(in, out, source.st_size);
	if (err == 0 && fchmod(out, source.st_mode & 07777) < 0)
		err = -errno;
	if (close(steal_fd(&out)) < 0 && err == 0)
		err = -errno;
	return err;
}

static int
copy_link(const char *from, const char *to)
{
	char text[PATH_MAX];
	ssize_t n = readlink(from, text, sizeof(text) - 1);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	return symlink(text, to) < 0 ? -errno : 0;
}

/* The real path of what exists of it, with the rest behind. */
static char *
resolve_as_far(const char *path)
{
	_cleanup_free_ char *copy = xstrdup(path);
	char *slash = copy + strlen(copy), *real;

	while ((real = realpath(copy[0] ? copy : "/", NULL)) == NULL) {
		while (slash > copy && *--slash != '/')
			continue;
		*slash = '\0';
		if (slash == copy)
			return xstrdup(path);
	}
	if (path[strlen(copy)] != '\0') {
		char *all = xasprintf(
		    "%s%s", strcmp(real, "/") ? real : "", path + strlen(copy));

		free(real);
		return all;
	}
	return real;
}

static bool
is_inside(const char *from, const char *to)
{
	_cleanup_free_ char *source = resolve_as_far(from);
	_cleanup_free_ char *target = resolve_as_far(to);
	size_t n = strlen(source);

	if (strcmp(source, "/") == 0)
		return true;
	return strncmp(source, target, n) == 0 &&
	       (target[n] == '/' || target[n] == '\0');
}

static int
merge_directory(const char *path)
{
	struct stat st;

	if (mkdir(path, 0777) == 0)
		return 0;
	if (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	return -errno;
}

static int
copy_entry(const FTSENT *e, const char *to)
{
	switch (e->fts_info) {
	case FTS_D:
		return e->fts_level == 0 ? make_directories(to)
					 : merge_directory(to);
	case FTS_F:
		return copy_file(e->fts_accpath, to);
	case FTS_SL:
	case FTS_SLNONE:
		return copy_link(e->fts_accpath, to);
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		return -e->fts_errno;
	default:
		return 0; /* leaving a directory; special files */
	}
}

static int
copy_tree(const char *from, const char *to)
{
	char *paths[] = { (char *)(uintptr_t)from, NULL };
	FTS *fts;
	FTSENT *e;
	size_t skip = strlen(from);
	int err = 0;

	if (is_inside(from, to))
		return COPY_INTO_ITSELF;
	fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	if (fts == NULL)
		return -errno;
	while (err == 0 && (errno = 0, e = fts_read(fts)) != NULL) {
		_cleanup_free_ char *target =
		    xasprintf("%s%s", to, e->fts_path + skip);

		err = copy_entry(e, target);
	}
	if (err == 0 && errno != 0)
		err = -errno;
	fts_close(fts);
	return err;
}

static int
copy_any(const struct fs_params *p)
{
	const char *from = p->path.path, *to = p->destination.path;
	struct stat st;

	if (lstat(from, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		return copy_file(from, to);
	if (S_ISLNK(st.st_mode))
		return copy_link(from, to);
	if (!S_ISDIR(st.st_mode))
		return COPY_UNSUPPORTED;
	return p->recursive ? copy_tree(from, to) : COPY_NEEDS_RECURSIVE;
}

int
file_fs_copy(struct request *r, const struct fs_params *p)
{
	int err = copy_any(p);

	switch (err) {
	case COPY_NEEDS_RECURSIVE:
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "fs/copy "
		    "requires recursive: true when sourcePath is a directory");
	case COPY_INTO_ITSELF:
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "fs/copy "
		    "cannot copy a directory to itself or one of its "
		    "descendants");
	case COPY_UNSUPPORTED:
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "fs/copy "
		    "only supports regular files, directories, and symlinks");
	case COPY_NOT_A_FILE:
		return reply_not_a_file(r, p->destination.path);
	default:
		return reply_done(r, err);
	}
}
