/* SPDX-License-Identifier: ISC */
/* Makes, shares, recognizes and removes placeholders, and keeps their lists. */
#include "placeholder.h"

#include <dirent.h>
#include <linux/openat2.h>
#include <sys/file.h>

#include "mounts.h"
#include "sandbox_message.h"
#include "view.h"

/* Somebody may remove a list after we opened it and before we locked it. Who
 * removes it holds the lock for some microseconds, on a busy machine or if a
 * signal stops him for longer: he has 4 s. */
#define TRIES	 4000
#define PAUSE_NS 1000000

#define LIST_USUAL_BYTES 4096
#define LIST_MAX_BYTES	 (1u << 20)

static int lists = -1;
static uid_t user;
/* What covers placeholders in the view, if this process has one. */
static struct stat cover_directory, cover_file;

void
placeholders_begin(bool in_view)
{
	if (fcntl(PLACEHOLDERS_FD, F_SETFD, FD_CLOEXEC) == 0)
		lists = PLACEHOLDERS_FD;
	user = geteuid();
	if (!in_view)
		return;
	lstat(VIEW_EMPTY_DIRECTORY, &cover_directory);
	lstat(VIEW_EMPTY_BLANK, &cover_file);
}

/* path: with '/' as its last character. */
static int
open_made(char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	for (char *p = path + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(path, 0700);
		*p = '/';
	}
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void
placeholders_begin_alone(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	bool given = state != NULL && state[0] == '/';
	char path[PATH_MAX];
	int fd;

	if (!given && (home == NULL || home[0] != '/'))
		return;
	snprintf(path, sizeof(path), "%s%s/execd/placeholders/",
	    given ? state : home, given ? "" : "/.local/state");
	fd = open_made(path);
	if (fd < 0)
		return;
	if (fd != PLACEHOLDERS_FD) {
		dup3(fd, PLACEHOLDERS_FD, O_CLOEXEC);
		close(fd);
	}
	placeholders_begin(false);
}

int
placeholders_lists(void)
{
	return lists;
}

char *
placeholders_path(void)
{
	char path[PATH_MAX], name[32];
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", lists);
	n = readlink(name, path, sizeof(path));
	return n > 0 && (size_t)n < sizeof(path) && path[0] == '/'
		   ? xstrndup(path, (size_t)n)
		   : NULL;
}

static const char *
last_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

/* Opens a directory by an absolute path without any link. */
static int
open_directory(const char *path)
{
	const struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static void
name_list(char key[40], const struct stat *directory)
{
	snprintf(key, 40, "%llx-%llx", (unsigned long long)directory->st_dev,
	    (unsigned long long)directory->st_ino);
}

/* --- lines of a list ---------------------------------------------------- */

/*
 * A list has the path of its directory, and a line for each placeholder:
 * "INODE SECONDS NANOSECONDS NAME". Each ends with a NUL. The inode is 0 in the
 * line that is written before the placeholder is made, with the time of then.
 */
struct line {
	unsigned long long inode;
	long long seconds;
	long nanoseconds;
	const char *name;
};

static void
put_line(struct buf *b, ino_t inode, const struct timespec *t, const char *name)
{
	buf_printf(b, "%llx %lld %ld %s", (unsigned long long)inode,
	    (long long)t->tv_sec, t->tv_nsec, name);
	buf_put_u8(b, '\0');
}

static bool
parse_line(const char *text, struct line *l)
{
	int at = 0;

	if (sscanf(text, "%llx %lld %ld %n", &l->inode, &l->seconds,
		&l->nanoseconds, &at) != 3 ||
	    at == 0)
		return false;
	l->name = text + at;
	return *l->name != '\0' && strchr(l->name, '/') == NULL;
}

/* A placeholder without an inode was made within a second after that time. */
static bool
fits(const struct line *l, const struct stat *st)
{
	long long ns = (st->st_ctim.tv_sec - l->seconds) * 1000000000LL +
		       st->st_ctim.tv_nsec - l->nanoseconds;

	return l->inode != 0 ? l->inode == st->st_ino && ns == 0
			     : ns >= 0 && ns < 1000000000;
}

/* Whoever changes a file soon after it was made is no matter here: this only
 * spares most files a look at the lists. */
static bool
can_be(const struct stat *st)
{
	return st->st_uid == user &&
	       (S_ISDIR(st->st_mode)
		       ? st->st_nlink <= 2
		       : S_ISREG(st->st_mode) && st->st_size == 0) &&
	       st->st_ctim.tv_sec - st->st_mtim.tv_sec <= 1;
}

/* Reads a list; a NUL follows its end. The caller frees the text. */
static char *
read_list(int list, size_t *len)
{
	size_t room = LIST_USUAL_BYTES;
	char *text = xmalloc(room + 1);
	ssize_t n = pread(list, text, room, 0);

	if (n == (ssize_t)room) {
		room = LIST_MAX_BYTES;
		text = xreallocarray(text, room + 1, 1);
		n = pread(list, text, room, 0);
	}
	*len = n > 0 ? (size_t)n : 0;
	text[*len] = '\0';
	return text;
}

/* Returns the last line of a name; those before it are of earlier files. */
static const char *
find_line(const char *text, size_t len, const char *name, struct line *found)
{
	const char *last = NULL;
	struct line l;

	for (const char *p = text; p < text + len; p += strlen(p) + 1)
		if (parse_line(p, &l) && strcmp(l.name, name) == 0) {
			last = p;
			*found = l;
		}
	return last;
}

static bool
is_cover(const struct stat *st, const struct stat *cover)
{
	return cover->st_ino != 0 && st->st_dev == cover->st_dev &&
	       st->st_ino == cover->st_ino;
}

static int
stat_parent(int at, const char *path, struct stat *st)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *parent = NULL;

	if (slash == NULL)
		return at == AT_FDCWD ? stat(".", st) : fstat(at, st);
	parent = xstrndup(path, slash > path ? (size_t)(slash - path) : 1);
	return fstatat(at, parent, st, 0);
}

bool
placeholder_is(int at, const char *path, const struct stat *st)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int list = -1;
	struct stat parent;
	struct line l;
	char key[40];
	size_t len;

	if (is_cover(st, &cover_directory) || is_cover(st, &cover_file))
		return true;
	if (lists < 0 || !can_be(st) || stat_parent(at, path, &parent) < 0)
		return false;
	name_list(key, &parent);
	list = openat(lists, key, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (list < 0)
		return false;
	text = read_list(list, &len);
	return find_line(text, len, slash != NULL ? slash + 1 : path, &l) &&
	       fits(&l, st);
}

/* --- changing a directory ----------------------------------------------- */

enum change { MAKE_DIRECTORY, MAKE_FILE, REMOVE_DIRECTORY, REMOVE_FILE };

static int
change_once(int directory, const char *name, enum change what)
{
	int fd, err;

	switch (what) {
	case MAKE_DIRECTORY:
		err = mkdirat(directory, name, 0755);
		break;
	case MAKE_FILE:
		err = fd = openat(directory, name,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (fd >= 0)
			err = close(fd);
		break;
	default:
		err = unlinkat(directory, name,
		    what == REMOVE_DIRECTORY ? AT_REMOVEDIR : 0);
	}
	return err < 0 ? -errno : 0;
}

/*
 * The owner of a directory in which he may not write can permit it to himself,
 * and so can his commands. So it is done here, for a moment.
 */
static int
change(int directory, const char *name, enum change what)
{
	int err = change_once(directory, name, what);
	char path[sizeof("/proc/self/fd/2147483647")];
	struct stat st;

	if (err != -EACCES || fstat(directory, &st) < 0 || st.st_uid != user)
		return err;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", directory);
	if (chmod(path, (st.st_mode & 07777) | S_IWUSR | S_IXUSR) < 0)
		return err;
	err = change_once(directory, name, what);
	chmod(path, st.st_mode & 07777);
	return err;
}

/* Tells whether this user, and so a command, can make nothing there. */
static bool
is_closed(int err)
{
	return err == -EROFS || err == -EACCES || err == -EPERM;
}

/* --- removing ----------------------------------------------------------- */

/* Removes what the list has, if it is as it was made, and the list itself. The
 * caller has the exclusive lock on it. */
static void
finish(int list, const char *key, int directory)
{
	size_t len;
	_cleanup_free_ char *text = read_list(list, &len);
	struct line l, last;
	struct stat st;

	for (const char *p = text; p < text + len; p += strlen(p) + 1)
		if (parse_line(p, &l) &&
		    find_line(text, len, l.name, &last) == p &&
		    fstatat(directory, l.name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    can_be(&st) && fits(&l, &st))
			change(directory, l.name,
			    S_ISDIR(st.st_mode) ? REMOVE_DIRECTORY
						: REMOVE_FILE);
	unlinkat(lists, key, 0);
}

/* Finds the directory of a list by the path in it. */
static int
open_listed(int list, const char *key)
{
	size_t len;
	_cleanup_free_ char *text = read_list(list, &len);
	_cleanup_close_ int fd = text[0] == '/' ? open_directory(text) : -1;
	struct stat st;
	char now[40];

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	name_list(now, &st);
	if (strcmp(now, key) == 0)
		return steal_fd(&fd);
	log_info("%s was moved: placeholders in it stay", text);
	return -1;
}

/* Removes what a killed runner left. */
static void
finish_left(const char *key)
{
	_cleanup_close_ int list =
	    openat(lists, key, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_cleanup_close_ int directory = -1;
	struct stat st;

	/* The name may be another list's by now. */
	if (list < 0 || flock(list, LOCK_EX | LOCK_NB) < 0 ||
	    fstat(list, &st) < 0 || st.st_nlink == 0)
		return;
	directory = open_listed(list, key);
	finish(list, key, directory);
}

/* The file system of a directory may not answer, so nobody waits for this. */
static void __attribute__((noreturn)) finish_all_left(void)
{
	int fd = openat(lists, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	close(CONTROL_FD);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (d != NULL && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.')
			finish_left(e->d_name);
	_exit(0);
}

void
placeholders_clean(void)
{
	_Alignas(struct dirent64) char names[1024];
	ssize_t n = getdents64(lists, names, sizeof(names));

	for (ssize_t at = 0; at < n;) {
		const struct dirent64 *e =
		    (const struct dirent64 *)(const void *)(names + at);

		if (e->d_name[0] != '.' && fork() == 0)
			finish_all_left();
		at = e->d_name[0] != '.' ? n : at + e->d_reclen;
	}
}

/* --- taking ------------------------------------------------------------- */

/*
 * Opens a list with a shared lock. A list that the last user removes meanwhile
 * is made anew. Returns a descriptor, or -errno.
 */
static int
open_list(const char *key, bool *fresh)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct stat st;

	for (int i = 0; i < TRIES; i++) {
		_cleanup_close_ int fd = openat(lists, key,
		    O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);

		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_SH | LOCK_NB) < 0) {
			if (errno != EWOULDBLOCK)
				return -errno;
			nanosleep(&pause, NULL);
		} else if (fstat(fd, &st) < 0) {
			return -errno;
		} else if (st.st_nlink > 0) {
			*fresh = st.st_size == 0;
			return steal_fd(&fd);
		}
	}
	return -EBUSY;
}

/* What stands there is covered, a placeholder or not. */
static int
see(const struct placeholder_place *pl, struct placeholder *m)
{
	struct stat st;
	bool same;

	if (fstatat(pl->directory, last_name(m->path), &st,
		AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return -ESTALE;
	same = m->seen.device == st.st_dev && m->seen.inode == st.st_ino &&
	       memcmp(&m->changed, &st.st_ctim, sizeof(m->changed)) == 0;
	m->covered = m->covered && same;
	m->seen =
	    (struct fs_node){ S_ISDIR(st.st_mode) ? FS_DIRECTORY : FS_FILE,
		    st.st_dev, st.st_ino };
	m->changed = st.st_ctim;
	return 0;
}

static int
make(const struct placeholder_place *pl, struct placeholder *m)
{
	int err = change(pl->directory, last_name(m->path),
	    m->directory ? MAKE_DIRECTORY : MAKE_FILE);

	m->made = err == 0;
	if (is_closed(err)) {
		*m = (struct placeholder){ .path = m->path,
			.directory = m->directory };
		return 0;
	}
	return err < 0 && err != -EEXIST ? err : see(pl, m);
}

/* Others may use the directory. Then their placeholders exist already. */
static int
find_missing(const struct placeholder_place *pl, bool fresh, struct buf *b)
{
	struct timespec now;

	/* The clock of a file's times. */
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	for (size_t i = 0; i < pl->count; i++) {
		struct placeholder *m = pl->first + i;
		int err = fresh ? -ENOENT : see(pl, m);

		if (err < 0 && err != -ENOENT)
			return err;
		m->made = err < 0;
		if (m->made)
			put_line(b, 0, &now, last_name(m->path));
	}
	return 0;
}

static int
make_missing(const struct placeholder_place *pl, struct buf *b)
{
	int err = 0;

	buf_clear(b);
	for (size_t i = 0; i < pl->count && err == 0; i++) {
		struct placeholder *m = pl->first + i;

		if (m->made)
			err = make(pl, m);
		if (m->made && err == 0)
			put_line(
			    b, m->seen.inode, &m->changed, last_name(m->path));
	}
	return err;
}

static int
append(const struct placeholder_place *pl, const struct buf *b)
{
	ssize_t n = pl->list < 0 || b->len == 0
			? (ssize_t)b->len
			: write(pl->list, b->data, b->len);

	if (n < 0 || b->failed)
		return n < 0 ? -errno : -E2BIG;
	return (size_t)n == b->len ? 0 : -ENOSPC;
}

/* The lines are written before the files are made, so that whoever is killed in
 * between leaves nothing that is on no list. */
static int
take_listed(const struct placeholder_place *pl, const char *path, bool fresh)
{
	struct buf b;
	int err;

	buf_init(&b, LIST_MAX_BYTES);
	if (fresh)
		buf_put(&b, path, strlen(path) + 1);
	err = find_missing(pl, fresh, &b);
	if (err == 0)
		err = append(pl, &b);
	if (err == 0)
		err = make_missing(pl, &b);
	if (append(pl, &b) < 0 && err == 0)
		err = -EIO;
	buf_clear(&b);
	return err;
}

static int
take(struct placeholder_place *pl)
{
	const char *path = pl->first->path, *name = last_name(path);
	_cleanup_free_ char *parent =
	    xstrndup(path, name - path > 1 ? (size_t)(name - path) - 1 : 1);
	bool fresh = true;
	struct stat st;

	pl->directory = open_directory(parent);
	if (pl->directory < 0 || fstat(pl->directory, &st) < 0)
		return pl->directory < 0 ? pl->directory : -errno;
	name_list(pl->key, &st);
	if (lists >= 0)
		pl->list = open_list(pl->key, &fresh);
	return pl->list < 0 && lists >= 0 ? pl->list
					  : take_listed(pl, parent, fresh);
}

int
placeholders_take(struct placeholders *p, char *step)
{
	static bool told;
	int err = 0;

	if (lists < 0 && !told)
		log_warn(0,
		    "no directory for the lists of placeholders: "
		    "placeholders stay where commands of a sandbox run");
	told = p->taken = true;
	for (size_t i = 0; i < p->nplaces && err == 0; i++) {
		err = take(&p->places[i]);
		if (err < 0)
			snprintf(step, SANDBOX_STEP_MAX,
			    "making %.150s, which must stay missing: %s",
			    p->places[i].first->path, strerror(-err));
	}
	if (err < 0)
		placeholders_leave(p);
	return err;
}

void
placeholders_covered(struct placeholders *p)
{
	for (size_t i = 0; i < p->count; i++)
		p->all[i].covered = true;
}

static void
leave(struct placeholder_place *pl)
{
	const int fds[] = { pl->directory, pl->list };

	if (pl->list >= 0 && flock(pl->list, LOCK_EX | LOCK_NB) == 0)
		finish(pl->list, pl->key, pl->directory);
	if (pl->directory >= 0)
		mounts_close(fds, pl->list >= 0 ? 2 : 1);
	pl->list = pl->directory = -1;
}

void
placeholders_leave(struct placeholders *p)
{
	for (size_t i = 0; i < p->nplaces && p->taken; i++)
		leave(&p->places[i]);
	p->taken = false;
}

/* --- of a plan ---------------------------------------------------------- */

/* In a plan the names of a directory follow each other, but for what lies below
 * them. A directory with two places has two users. */
static bool
lies_beside(const struct placeholder *a, const struct placeholder *b)
{
	size_t len = (size_t)(last_name(a->path) - a->path);

	return len == (size_t)(last_name(b->path) - b->path) &&
	       memcmp(a->path, b->path, len) == 0;
}

void
placeholders_init(struct placeholders *p, const struct plan *plan)
{
	*p = (struct placeholders){
		.all = xcalloc(plan->count + 1, sizeof(*p->all)),
		.places = xcalloc(plan->count + 1, sizeof(*p->places)),
	};
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_mount *mount = &plan->mounts[i];
		struct placeholder *m = &p->all[p->count];

		if (!plan_is_placeholder(mount))
			continue;
		*m = (struct placeholder){ .path = mount->path,
			.directory =
			    mount->kind == PLAN_PLACEHOLDER_DIRECTORY };
		if (p->count++ == 0 || !lies_beside(m - 1, m))
			p->places[p->nplaces++] = (struct placeholder_place){
				.first = m, .directory = -1, .list = -1
			};
		p->places[p->nplaces - 1].count++;
	}
}

void
placeholders_clear(struct placeholders *p)
{
	placeholders_leave(p);
	free(p->all);
	free(p->places);
	*p = (struct placeholders){ 0 };
}

bool
placeholders_match(const struct placeholders *p, const struct plan *plan)
{
	size_t next = 0;

	for (size_t i = 0; p->taken && i < plan->count; i++) {
		const struct fs_node *now = &plan->mounts[i].seen;
		const struct placeholder *m;

		if (!plan_is_placeholder(&plan->mounts[i]))
			continue;
		m = &p->all[next++];
		if (m->seen.type != FS_MISSING &&
		    (now->device != m->seen.device ||
			now->inode != m->seen.inode))
			return false;
	}
	return true;
}
