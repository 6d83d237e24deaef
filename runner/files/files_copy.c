/* SPDX-License-Identifier: ISC */
/*
 * fs/copy: copies files with their permission bits, links as links, and merges
 * directories (doc/protocol.md section 10).
 */
#include "base.h"
#include "file_replace.h"
#include "files.h"

#define COPY_BYTES (1u << 20)

/* Errors with a text of this method; below any -errno. */
enum {
	COPY_NEEDS_RECURSIVE = -10000,
	COPY_INTO_ITSELF,
	COPY_UNSUPPORTED,
	COPY_NOT_A_FILE
};

/* A file without a size that has more than this is not copied. */
#define STREAM_MAX_BYTES (512u << 20)

/* Copies a file without a size (/proc) up to its end. */
static int
copy_stream(int in, int out, char *buffer)
{
	size_t total = 0;
	ssize_t n;

	while ((n = read(in, buffer, COPY_BYTES)) != 0) {
		int err = n < 0 ? -errno
				: write_at(out, buffer, (size_t)n, AT_POSITION);

		if (err == -EINTR)
			continue;
		if (err < 0)
			return err;
		total += (size_t)n;
		if (total > STREAM_MAX_BYTES)
			return -EFBIG;
	}
	return 0;
}

static int
copy_content(int in, int out, off_t size)
{
	_cleanup_free_ char *buffer = NULL;

	if (size > 0)
		return file_copy_content(in, out, size);
	buffer = xmalloc(COPY_BYTES);
	return copy_stream(in, out, buffer);
}

static int
open_source(int dir, const char *name, struct stat *st)
{
	int fd = openat(dir, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode)) {
		close(fd);
		return COPY_UNSUPPORTED;
	}
	return fd;
}

/* Copies content and mode into an open file. */
static int
copy_into(int in, const struct stat *source, int out)
{
	int err;

	if (ftruncate(out, 0) < 0)
		return -errno;
	err = copy_content(in, out, source->st_size);
	/*
	 * A copy is never set-user-id or set-group-id: its owner may be another
	 * one.
	 */
	if (err == 0 && fchmod(out, source->st_mode & 0777) < 0)
		err = -errno;
	return err;
}

static bool
is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/*
 * follow is O_NOFOLLOW if a link in place of the target must not be followed,
 * otherwise 0.
 */
static int
copy_file(
    int from_dir, const char *from, int to_dir, const char *to, int follow)
{
	_cleanup_close_ int in = -1, out = -1;
	struct stat source, target;
	int err;

	in = open_source(from_dir, from, &source);
	if (in < 0)
		return in;
	/*
	 * Copied onto itself, also through links, a file would be emptied first
	 * (quirk Q2).
	 */
	if (fstatat(to_dir, to, &target, follow ? AT_SYMLINK_NOFOLLOW : 0) ==
		0 &&
	    is_same(&source, &target))
		return 0;
	out = open_regular(to_dir, to, O_WRONLY | O_CREAT | follow, &target);
	if (out < 0)
		return out == -ENOTSUP ? COPY_NOT_A_FILE : out;
	if (is_same(&source, &target))
		return 0;
	err = copy_into(in, &source, out);
	if (close(steal_fd(&out)) < 0 && err == 0)
		err = -errno;
	return err;
}

static int
copy_link(int from_dir, const char *from, int to_dir, const char *to)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(from_dir, from, text, sizeof(text) - 1);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	return symlinkat(text, to_dir, to) < 0 ? -errno : 0;
}

/* Returns the real path of the part that exists, followed by the rest. */
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

	return path_lies_in(target, source);
}

/* The tree that is copied and its copy, both at the same place. */
struct copy {
	struct descent from, to;
	struct stat top; /* of the copy, which must not be copied itself */
};

/* Takes both directories over. An empty one needs nothing more. */
static int
enter(struct copy *c, int from, int to)
{
	struct names names = { 0 }, none = { 0 };
	int err = names_read_fd(from, &names);

	if (err < 0 || names.count == 0) {
		names_free(&names);
		close(from);
		close(to);
		return err;
	}
	err = descent_enter(&c->from, from, &names);
	if (err < 0)
		close(to);
	else
		err = descent_enter(&c->to, to, &none);
	return err;
}

/* A directory that exists already is used, but not a link to one. */
static int
merge_directory(int dir, const char *name)
{
	int fd;

	if (mkdirat(dir, name, 0777) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dir, name, OPEN_PASSED);
	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? -EEXIST : -errno;
	return fd;
}

static int
copy_directory(struct copy *c, const char *name)
{
	_cleanup_close_ int from = openat(c->from.fd, name, OPEN_LISTED);
	struct stat st;
	int to;

	if (from < 0 || fstat(from, &st) < 0)
		return -errno;
	if (is_same(&st, &c->top))
		return COPY_INTO_ITSELF;
	to = merge_directory(c->to.fd, name);
	return to < 0 ? to : enter(c, steal_fd(&from), to);
}

/*
 * Where a link stands in the target's place, it counts as existing already, as
 * for links. It is not followed, because it could lead anywhere.
 */
static int
copy_inner_file(struct copy *c, const char *name)
{
	int err = copy_file(c->from.fd, name, c->to.fd, name, O_NOFOLLOW);
	struct stat st;

	if (err != COPY_NOT_A_FILE && err != -ELOOP)
		return err == COPY_UNSUPPORTED ? 0 : err;
	if (fstatat(c->to.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode))
		return -EEXIST;
	return err;
}

static int
copy_entry(struct copy *c, const char *name)
{
	struct stat st;

	if (fstatat(c->from.fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		return copy_inner_file(c, name);
	if (S_ISLNK(st.st_mode))
		return copy_link(c->from.fd, name, c->to.fd, name);
	/* Special files are skipped. */
	return S_ISDIR(st.st_mode) ? copy_directory(c, name) : 0;
}

static int
leave(struct copy *c)
{
	int err = descent_leave(&c->from);

	return err < 0 ? err : descent_leave(&c->to);
}

static int
copy_top(struct copy *c, const char *from, const char *to)
{
	_cleanup_close_ int from_fd = open(from, OPEN_LISTED), to_fd = -1;
	struct stat st;
	int err;

	if (from_fd < 0)
		return -errno;
	err = make_directories(to);
	if (err < 0)
		return err;
	to_fd = open(to, OPEN_PASSED & ~O_NOFOLLOW);
	if (to_fd < 0 || fstat(to_fd, &c->top) < 0 || fstat(from_fd, &st) < 0)
		return -errno;
	if (is_same(&st, &c->top))
		return COPY_INTO_ITSELF;
	return enter(c, steal_fd(&from_fd), steal_fd(&to_fd));
}

static int
copy_tree(const char *from, const char *to)
{
	struct copy c = { .from = { .fd = -1 }, .to = { .fd = -1 } };
	int err;

	if (is_inside(from, to))
		return COPY_INTO_ITSELF;
	err = copy_top(&c, from, to);
	while (err == 0 && c.from.depth > 0) {
		const char *name = descent_next(&c.from);

		err = name != NULL ? copy_entry(&c, name) : leave(&c);
	}
	descent_clear(&c.from);
	descent_clear(&c.to);
	return err;
}

static int
copy_any(const struct fs_params *p)
{
	const char *from = p->path.path, *to = p->destination.path;
	struct stat st;

	if (lstat(from, &st) < 0)
		return -errno;
	/* No call would accept it, so it is refused before any work. */
	if (strlen(to) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (S_ISREG(st.st_mode))
		return copy_file(AT_FDCWD, from, AT_FDCWD, to, 0);
	if (S_ISLNK(st.st_mode))
		return copy_link(AT_FDCWD, from, AT_FDCWD, to);
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
