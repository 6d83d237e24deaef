/* SPDX-License-Identifier: ISC */
/* Makes, shares and removes placeholders, and keeps the list of them. */
#include "placeholder.h"

#include <sys/file.h>
#include <sys/random.h>

#include "base.h"
#include "buf.h"
#include "mounts.h"

#define MARK_SECONDS 1
#define MARKS_MAX    1000000000 /* nanoseconds */
#define NAME_CAP     40

/*
 * Somebody may remove a placeholder after we found it and before we locked it.
 */
#define TRIES	 16
#define PAUSE_NS 1000000

bool
placeholder_is(const struct stat *st)
{
	mode_t mode = S_ISDIR(st->st_mode) ? S_IFDIR | 0555 : S_IFREG | 0600;

	/*
	 * A directory is covered whoever made it. A file of another user could
	 * not be opened for locking.
	 */
	return st->st_mode == mode &&
	       (S_ISDIR(st->st_mode) || st->st_uid == geteuid()) &&
	       st->st_mtim.tv_sec == MARK_SECONDS &&
	       (S_ISDIR(st->st_mode) || st->st_size == 0);
}

/*
 * Opens the directory that contains the path, without following a link. *name
 * points into path.
 */
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

/* --- the mark ----------------------------------------------------------- */

static uint64_t
hash(const struct siphash_key *key, const char *path, uint64_t device,
    uint64_t inode)
{
	const uint64_t numbers[] = { device, inode };
	size_t n = strlen(path) + 1;
	_cleanup_free_ char *text = xmalloc(n + sizeof(numbers));
	uint64_t out[2];

	memcpy(text, path, n);
	memcpy(text + n, numbers, sizeof(numbers));
	siphash128(key, text, n + sizeof(numbers), out);
	return out[0];
}

static long
mark_of(const struct siphash_key *key, const char *path, const struct stat *st)
{
	return (long)(hash(key, path, st->st_dev, st->st_ino) % MARKS_MAX);
}

static int
put_mark(int parent, const char *name, const char *path,
    const struct siphash_key *key)
{
	struct timespec times[2] = { { .tv_sec = MARK_SECONDS },
		{ .tv_sec = MARK_SECONDS } };
	struct stat st;

	if (key != NULL) {
		if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		times[1].tv_nsec = mark_of(key, path, &st);
	}
	return utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno
								       : 0;
}

/* --- making ------------------------------------------------------------- */

static void
name_temporary(char name[NAME_CAP], uint64_t number)
{
	snprintf(
	    name, NAME_CAP, ".execd-mask-%016llx", (unsigned long long)number);
}

static int
make_empty(int parent, const char *name, bool directory)
{
	int fd;

	if (directory)
		return mkdirat(parent, name, 0555) < 0 ? -errno : 0;
	fd = openat(parent, name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/*
 * Uses a name that can be computed from the list, so that a cleanup finds it.
 * If somebody else is using that name, any other name is taken.
 */
static int
make_temporary(int parent, char name[NAME_CAP], const struct placeholder *m,
    const struct siphash_key *key)
{
	int err = -EEXIST;
	uint64_t r;

	if (key != NULL) {
		name_temporary(name, hash(key, m->path, 0, 0));
		err = make_empty(parent, name, m->directory);
	}
	if (err != -EEXIST)
		return err;
	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return -EIO;
	name_temporary(name, r);
	return make_empty(parent, name, m->directory);
}

/*
 * The mark is set under a temporary name, so nobody sees an unfinished
 * placeholder.
 */
static int
make(int parent, const char *name, const struct placeholder *m,
    const struct siphash_key *key)
{
	mode_t mode = m->directory ? 0555 : 0600;
	char temporary[NAME_CAP];
	int err = make_temporary(parent, temporary, m, key);

	if (err < 0)
		return err;
	if (fchmodat(parent, temporary, mode, 0) < 0)
		err = -errno;
	if (err == 0)
		err = put_mark(parent, temporary, m->path, key);
	if (err == 0 &&
	    renameat2(parent, temporary, parent, name, RENAME_NOREPLACE) < 0)
		err = -errno;
	if (err < 0)
		unlinkat(parent, temporary, m->directory ? AT_REMOVEDIR : 0);
	return err;
}

/* --- taking and leaving ------------------------------------------------- */

/*
 * Tells whether the directory is closed to this user, and so to commands as
 * well.
 */
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

/*
 * Returns 1 to try again: the placeholder was removed, or somebody is about to
 * remove it. Whatever exists under the name by now is locked and later covered,
 * a placeholder or not.
 */
static int
lock(struct placeholder *m, int parent, const char *name)
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
placeholder_take(struct placeholder *m, const struct siphash_key *key)
{
	const char *name;
	_cleanup_close_ int parent = open_parent(m->path, &name);
	bool made = false;
	int err = 1;

	if (parent < 0)
		return parent;
	for (int i = 0; i < TRIES && err == 1; i++) {
		err = make(parent, name, m, key);
		if (err < 0 && err != -EEXIST)
			return is_closed(parent, err) ? 0 : err;
		made = err == 0;
		err = lock(m, parent, name);
	}
	/*
	 * On a file system without locks nobody can share the placeholder, so
	 * it is removed again.
	 */
	if (made && err < 0 && err != -EBUSY)
		unlinkat(parent, name, m->directory ? AT_REMOVEDIR : 0);
	return err == 1 ? -EBUSY : err;
}

static void
remove_unused(int fd, int parent, const char *name)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 ||
	    !placeholder_is(&st) || !is_there(parent, name, &st))
		return;
	unlinkat(parent, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
}

void
placeholder_leave(struct placeholder *m)
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

/* --- what was left behind ----------------------------------------------- */

/* Removes an unfinished placeholder if it is empty. */
static void
cleanup_temporary(int parent, const char *path, const struct siphash_key *key)
{
	char name[NAME_CAP];
	struct stat st;

	name_temporary(name, hash(key, path, 0, 0));
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    st.st_uid != geteuid())
		return;
	if (S_ISDIR(st.st_mode))
		unlinkat(parent, name, AT_REMOVEDIR);
	else if (S_ISREG(st.st_mode) && st.st_size == 0)
		unlinkat(parent, name, 0);
}

void
placeholder_cleanup(
    const char *path, const struct siphash_key *key, bool orphan)
{
	const char *name;
	_cleanup_close_ int parent = open_parent(path, &name);
	_cleanup_close_ int fd = parent < 0 ? parent : open_it(parent, name);
	struct stat st;

	if (parent >= 0 && orphan)
		cleanup_temporary(parent, path, key);
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	if (st.st_uid == geteuid() && placeholder_is(&st) &&
	    st.st_mtim.tv_nsec == mark_of(key, path, &st))
		remove_unused(fd, parent, name);
	if (orphan && is_there(parent, name, &st))
		log_info("%s has changed since the stop, or is in use: it "
			 "stays",
		    path);
}

/* --- the list ----------------------------------------------------------- */

/* The list as it is on the disk, with a NUL after its end. */
struct content {
	char *text; /* owned */
	size_t len;
	bool orphan;
	struct siphash_key key;
};

void
placeholder_list_init(struct placeholder_list *l, int fd)
{
	*l = (struct placeholder_list){ .fd = fd };
}

static int
parse_header(struct content *c)
{
	const char *p = c->text;

	c->orphan = p[0] == PLACEHOLDER_LIST_ORPHAN[0];
	return (c->orphan || p[0] == PLACEHOLDER_LIST_LIVE[0]) &&
		       strlen(p) == PLACEHOLDER_LIST_HEADER - 1 &&
		       sscanf(p + 1, "%16" SCNx64 "%16" SCNx64, &c->key.k0,
			   &c->key.k1) == 2
		   ? 0
		   : -EBADMSG;
}

/* Reads at most the permitted size. The caller frees c->text in any case. */
static int
read_list(int fd, struct content *c)
{
	ssize_t n;

	*c =
	    (struct content){ .text = xmalloc(PLACEHOLDER_LIST_MAX_BYTES + 1) };
	n = pread(fd, c->text, PLACEHOLDER_LIST_MAX_BYTES, 0);
	if (n < 0)
		return -errno;
	c->len = (size_t)n;
	c->text[c->len] = '\0';
	return parse_header(c);
}

static const char *
next_path(const struct content *c, const char *path)
{
	path += strlen(path) + 1;
	return path < c->text + c->len ? path : NULL;
}

static bool
has(const struct content *c, const char *wanted)
{
	for (const char *path = next_path(c, c->text); path != NULL;
	     path = next_path(c, path))
		if (strcmp(path, wanted) == 0)
			return true;
	return false;
}

/* The list must be on the disk before there is anything to clean up. */
static int
append(int fd, const struct buf *b)
{
	if (b->len == 0)
		return 0;
	if (write(fd, b->data, b->len) != (ssize_t)b->len)
		return errno != 0 ? -errno : -EIO;
	return fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
}

int
placeholder_list_add(struct placeholder_list *l,
    const struct placeholder *placeholders, size_t n)
{
	struct content c;
	struct buf b;
	int err = read_list(l->fd, &c);

	buf_init(&b, PLACEHOLDER_LIST_MAX_BYTES);
	for (size_t i = 0; i < n && err == 0; i++) {
		size_t len = strlen(placeholders[i].path) + 1;

		if (has(&c, placeholders[i].path))
			continue;
		if (c.len + b.len + len > PLACEHOLDER_LIST_MAX_BYTES)
			err = -ENOSPC;
		else
			buf_put(&b, placeholders[i].path, len);
	}
	errno = 0;
	if (err == 0)
		err = append(l->fd, &b);
	if (err == 0)
		l->key = c.key;
	buf_clear(&b);
	free(c.text);
	return err;
}

/*
 * A compromised runner could have written anything: what is not a path, or not
 * a placeholder of this list and this user, is left alone. The list of a server
 * that is gone is emptied afterwards, because nobody reads it again.
 */
int
placeholder_list_cleanup(int fd)
{
	struct content c;
	int err = read_list(fd, &c);

	for (const char *path = err < 0 ? NULL : next_path(&c, c.text);
	     path != NULL; path = next_path(&c, path))
		if (path[0] == '/')
			placeholder_cleanup(path, &c.key, c.orphan);
	if (err == 0 && c.orphan && ftruncate(fd, 0) < 0)
		err = -errno;
	free(c.text);
	return err;
}
