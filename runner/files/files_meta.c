/* SPDX-License-Identifier: ISC */
/*
 * fs/getMetadata, fs/canonicalize, fs/createDirectory, fs/remove,
 * fs/readDirectory; fs/move, fs/chmod, fs/symlink, fs/setTimes.
 */

#include "base.h"
#include "file_replace.h"
#include "files.h"
#include "utf8.h"

/* Rounded down, also for times before 1970. */
static int64_t
to_ms(int64_t seconds, uint32_t nanoseconds)
{
	return seconds * 1000 + nanoseconds / 1000000;
}

/*
 * Writes the text of a link; null if it is no link, or if its text is not
 * UTF-8.
 */
static void
write_link_target(
    struct json_writer *w, int dir, const char *path, const struct stat *link)
{
	char target[PATH_MAX];
	ssize_t n = -1;

	json_key(w, "linkTarget");
	if (S_ISLNK(link->st_mode))
		n = readlinkat(dir, path, target, sizeof(target));
	if (n < 0 || n == sizeof(target) ||
	    utf8_check(0, (const uint8_t *)target, (size_t)n) != 0)
		json_null(w);
	else
		json_string(w, target, (size_t)n);
}

/* Writes the members that only an answer with details has. */
static void
write_details(struct json_writer *w, int dir, const char *name,
    const char *path, mode_t mode, const struct stat *link)
{
	json_key_u64(w, "mode", mode & FILE_MODE_MAX);
	json_key_bool(w, "hasAttributes", file_has_attributes(-1, path));
	write_link_target(w, dir, name, link);
}

static void
write_metadata(
    struct json_writer *w, const struct statx *st, const struct stat *link)
{
	int64_t born = 0;

	/* 0 if the file system does not know it (quirk Q15). */
	if (st->stx_mask & STATX_BTIME)
		born = to_ms(st->stx_btime.tv_sec, st->stx_btime.tv_nsec);
	json_key_bool(w, "isDirectory", S_ISDIR(st->stx_mode));
	json_key_bool(w, "isFile", S_ISREG(st->stx_mode));
	json_key_bool(w, "isSymlink", S_ISLNK(link->st_mode));
	json_key_u64(w, "size", st->stx_size);
	json_key_i64(w, "createdAtMs", born);
	json_key_i64(w, "modifiedAtMs",
	    to_ms(st->stx_mtime.tv_sec, st->stx_mtime.tv_nsec));
}

/* With `dangling`, a link that leads to nothing is described itself. */
static int
read_metadata(const char *path, bool dangling, struct statx *st)
{
	const unsigned mask = STATX_BASIC_STATS | STATX_BTIME;

	if (statx(AT_FDCWD, path, AT_STATX_SYNC_AS_STAT, mask, st) == 0)
		return 0;
	if (errno != ENOENT || !dangling ||
	    statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, mask, st) < 0)
		return -errno;
	return 0;
}

int
file_fs_get_metadata(struct request *r, const struct fs_params *p)
{
	struct json_writer w;
	struct statx st;
	struct stat link;
	int err;

	if (lstat(p->path.path, &link) < 0)
		return reply_file_error(r, -errno);
	if (files_hides(AT_FDCWD, p->path.path, &link))
		return reply_file_error(r, -ENOENT);
	err = read_metadata(p->path.path, p->details, &st);
	if (err < 0)
		return reply_file_error(r, err);
	w = reply_begin(r->channel, &r->id);
	write_metadata(&w, &st, &link);
	if (p->details)
		write_details(&w, AT_FDCWD, p->path.path, p->path.path,
		    st.stx_mode, &link);
	reply_end(r->channel, &w);
	return 0;
}

int
file_fs_canonicalize(struct request *r, const struct fs_params *p)
{
	_cleanup_free_ char *real = NULL;
	struct json_writer w;

	/* glibc's realpath(3) accepts any length, at a high cost. */
	if (strlen(p->path.path) >= PATH_MAX)
		return reply_file_error(r, -ENAMETOOLONG);
	real = realpath(p->path.path, NULL);
	if (real == NULL)
		return reply_file_error(r, -errno);
	w = reply_begin(r->channel, &r->id);
	json_key_path(&w, "path", real);
	reply_end(r->channel, &w);
	return 0;
}

static bool
is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* An existing directory of that name is as good as a new one. */
static int
make_directory(const char *path)
{
	int err = mkdir(path, 0777) < 0 ? -errno : 0;

	return err < 0 && is_directory(path) ? 0 : err;
}

int
make_directories(const char *path)
{
	_cleanup_free_ char *copy = xstrdup(path);
	char *slash = copy;
	int err = make_directory(path);

	if (err != -ENOENT)
		return err;
	while ((slash = strchr(slash + 1, '/')) != NULL) {
		*slash = '\0';
		err = make_directory(copy);
		if (err < 0)
			return err;
		*slash = '/';
	}
	return make_directory(path);
}

int
file_fs_create_directory(struct request *r, const struct fs_params *p)
{
	if (p->recursive)
		return reply_done(r, make_directories(p->path.path));
	return reply_done(r, mkdir(p->path.path, 0777) < 0 ? -errno : 0);
}

/*
 * Removes one name in the lowest directory, or enters it if it is a directory
 * that is not empty. A name that somebody else removed first is removed as
 * well.
 */
static int
remove_name(struct descent *d, const char *name)
{
	struct names names = { 0 };
	int fd, err;

	if (unlinkat(d->fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -errno;
	if (unlinkat(d->fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	fd = openat(d->fd, name, OPEN_LISTED);
	if (fd < 0)
		return -errno;
	err = names_read_fd(fd, &names);
	if (err == 0)
		return descent_enter(d, fd, &names);
	close(fd);
	names_free(&names);
	return err;
}

/* Goes up and removes the directory that is empty now. */
static int
leave_removed(struct descent *d)
{
	int err = descent_leave(d);

	if (err < 0 || d->depth == 0)
		return err;
	if (unlinkat(d->fd, descent_name(d), AT_REMOVEDIR) < 0 &&
	    errno != ENOENT)
		return -errno;
	return 0;
}

/* Begins in the parent, with the tree's name as the only name. */
static int
enter_parent(struct descent *d, const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *parent =
	    xstrndup(path, (size_t)(slash - path) + 1);
	struct names names = { 0 };
	int fd;

	fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	names_add(&names, slash + 1);
	return descent_enter(d, fd, &names);
}

/*
 * No link is entered, nor what a link names. Stops at the first error, because
 * the answer can report only one.
 */
static int
remove_tree(const char *path)
{
	struct descent d = { .fd = -1 };
	int err = enter_parent(&d, path);

	while (err == 0 && d.depth > 0) {
		const char *name = descent_next(&d);

		err = name != NULL ? remove_name(&d, name) : leave_removed(&d);
	}
	descent_clear(&d);
	return err;
}

static int
remove_entry(const struct fs_params *p)
{
	const char *path = p->path.path;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT && p->force ? 0 : -errno;
	if (!S_ISDIR(st.st_mode))
		return unlink(path) < 0 ? -errno : 0;
	if (!p->recursive)
		return rmdir(path) < 0 ? -errno : 0;
	return remove_tree(path);
}

int
file_fs_remove(struct request *r, const struct fs_params *p)
{
	if (strcmp(p->path.path, "/") == 0)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "fs/remove does not remove the root directory");
	return reply_done(r, remove_entry(p));
}

/*
 * Gets the attributes: those of a link's target if it has one. Returns false if
 * the entry is gone, or if a link leads to nothing and no details were asked
 * for.
 */
static bool
read_entry(int dir_fd, const char *name, const struct fs_params *p,
    struct stat *st, struct stat *link)
{
	if (!p->details)
		return fstatat(dir_fd, name, st, 0) == 0;
	if (fstatat(dir_fd, name, link, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (!S_ISLNK(link->st_mode) || fstatat(dir_fd, name, st, 0) < 0)
		*st = *link;
	return true;
}

/*
 * The URI has every byte of the name. fileName does not if the name is not
 * UTF-8.
 */
static void
write_entry_details(struct json_writer *w, int dir_fd, const char *name,
    const struct fs_params *p, const struct stat *st, const struct stat *link)
{
	_cleanup_free_ char *path = xasprintf(
	    "%s/%s", strcmp(p->path.path, "/") == 0 ? "" : p->path.path, name);

	json_key_path(w, "path", path);
	json_key_bool(w, "isSymlink", S_ISLNK(link->st_mode));
	json_key_u64(w, "size", (uint64_t)st->st_size);
	json_key_i64(w, "modifiedAtMs",
	    to_ms(st->st_mtim.tv_sec, (uint32_t)st->st_mtim.tv_nsec));
	write_details(w, dir_fd, name, path, st->st_mode, link);
}

static void
write_entry(struct json_writer *w, int dir_fd, const char *name,
    const struct fs_params *p)
{
	struct stat st, link;

	if (!read_entry(dir_fd, name, p, &st, &link) ||
	    files_hides(dir_fd, name, p->details ? &link : &st))
		return;
	json_begin(w, '{');
	json_key_cstring(w, "fileName", name);
	json_key_bool(w, "isDirectory", S_ISDIR(st.st_mode));
	json_key_bool(w, "isFile", S_ISREG(st.st_mode));
	if (p->details)
		write_entry_details(w, dir_fd, name, p, &st, &link);
	json_end(w, '}');
}

static void
reply_entries(struct request *r, int dir_fd, const struct names *names,
    const struct fs_params *p)
{
	struct json_writer w = reply_begin(r->channel, &r->id);

	json_key_begin(&w, "entries", '[');
	for (size_t i = 0; i < names->count; i++)
		write_entry(&w, dir_fd, names->all[i], p);
	json_end(&w, ']');
	reply_end(r->channel, &w);
}

/*
 * All names are read before the answer begins, because it cannot be taken back.
 */
int
file_fs_read_directory(struct request *r, const struct fs_params *p)
{
	DIR *d = opendir(p->path.path);
	struct names names = { 0 };
	int err;

	if (d == NULL)
		return reply_file_error(r, -errno);
	err = names_read(d, &names);
	if (err < 0)
		reply_file_error(r, err);
	else
		reply_entries(r, dirfd(d), &names, p);
	names_free(&names);
	closedir(d);
	return 0;
}

/* --- names, modes and times --------------------------------------------- */

/* They change no content (doc/protocol.md section 17). */

/* A FIFO, a device or a socket is never replaced: whoever writes to it would
 * write to a file from then on. */
static bool
is_special(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && !S_ISREG(st.st_mode) &&
	       !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode);
}

/* The answer says what of the file that was replaced could not be kept. */
static int
move_keeping(struct request *r, const struct fs_params *p)
{
	_cleanup_close_ int in =
	    open(p->path.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool sets = p->mode <= FILE_MODE_MAX;
	struct json_writer w;
	const char *unkept;
	int err = in < 0 ? -errno
			 : file_replace(in, p->path.path, p->destination.path,
			       sets ? p->mode : FILE_NO_MODE, sets, &unkept);

	if (err < 0)
		return reply_file_error(r, err);
	w = reply_begin(r->channel, &r->id);
	if (unkept != NULL)
		json_key_cstring(&w, "notKept", unkept);
	reply_end(r->channel, &w);
	return 0;
}

/* Moves in one step or not at all; nothing is copied to another file system. */
int
file_fs_move(struct request *r, const struct fs_params *p)
{
	unsigned flags = p->overwrite ? 0 : RENAME_NOREPLACE;

	if (p->overwrite && is_special(p->destination.path))
		return reply_not_a_file(r, p->destination.path);
	if (p->overwrite && p->keep_attributes)
		return move_keeping(r, p);
	if (renameat2(AT_FDCWD, p->path.path, AT_FDCWD, p->destination.path,
		flags) < 0)
		return reply_file_error(r, -errno);
	return reply_empty(r);
}

int
file_fs_chmod(struct request *r, const struct fs_params *p)
{
	return reply_done(r, chmod(p->path.path, p->mode) < 0 ? -errno : 0);
}

int
file_fs_symlink(struct request *r, const struct fs_params *p)
{
	_cleanup_free_ char *target = xstrndup(p->target.ptr, p->target.len);

	return reply_done(r, symlink(target, p->path.path) < 0 ? -errno : 0);
}

/*
 * A file system that cannot store a time silently stores another one. Some
 * count in steps of two seconds.
 */
static int
check_time(const char *path, time_t wanted)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	return llabs((long long)st.st_mtim.tv_sec - (long long)wanted) > 2
		   ? -ERANGE
		   : 0;
}

int
file_fs_set_times(struct request *r, const struct fs_params *p)
{
	const struct timespec times[] = {
		{ .tv_nsec = UTIME_OMIT },
		{ .tv_sec = (time_t)(p->modified_ms / 1000),
		    .tv_nsec = (long)(p->modified_ms % 1000) * 1000000 },
	};

	if (utimensat(AT_FDCWD, p->path.path, times, 0) < 0)
		return reply_file_error(r, -errno);
	return reply_done(r, check_time(p->path.path, times[1].tv_sec));
}
