/* SPDX-License-Identifier: ISC */
/*
 * The lists of the placeholders that sessions make.
 *
 * The lock on a list says that its server, or a runner of it, is alive. The
 * lock belongs to the open file, which all of them share, so it ends with the
 * last of them.
 */
#include "placeholder_files.h"

#include <dirent.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base.h"
#include "broker_state.h"
#include "conf.h"
#include "identity.h"
#include "placeholder_format.h"
#include "queue.h"
#include "spawn_client.h"

/*
 * The cleanup after a killed runner.
 */

/* At once. Each process lives for milliseconds, unless its user stops it. */
#define CLEANUPS_MAX	      64
#define CLEANUPS_PER_USER_MAX 32
#define PATIENCE_MS	      10000

static struct cleanup {
	pid_t pid; /* 0: the slot is free */
	uid_t uid;
	int64_t started_ms;
} running[CLEANUPS_MAX];

static struct cleanup *
find(pid_t pid)
{
	for (size_t i = 0; i < nitems(running); i++)
		if (running[i].pid == pid)
			return &running[i];
	return NULL;
}

bool
placeholder_cleanup_reap(pid_t pid)
{
	struct cleanup *c = find(pid);

	if (c != NULL)
		c->pid = 0;
	return c != NULL;
}

/* A user can stop them. A killed one frees its slot when it is reaped. */
static void
kill_stuck(int64_t now)
{
	for (size_t i = 0; i < nitems(running); i++)
		if (running[i].pid > 0 &&
		    running[i].started_ms + PATIENCE_MS <= now)
			spawn_kill(running[i].pid);
}

/* Half of the places are always left to other users. */
static struct cleanup *
find_slot(uid_t uid)
{
	size_t n = 0;

	kill_stuck(now_ms());
	for (size_t i = 0; i < nitems(running); i++)
		n += running[i].pid > 0 && running[i].uid == uid;
	return n < CLEANUPS_PER_USER_MAX ? find(0) : NULL;
}

void
placeholder_cleanup(const struct identity *id, int list)
{
	struct cleanup *c = find_slot(id->uid);
	pid_t pid =
	    c != NULL ? spawn_program(PROGRAM_OF_CLEANUP, id, list) : -EAGAIN;

	if (pid > 0)
		*c = (struct cleanup){ pid, id->uid, now_ms() };
	else
		log_error((int)pid, "removing what a session left behind");
}

#define NAME_LEN_MAX 64
#define CREATE_TRIES 4
/* The most lists of dead servers that one start looks at. */
#define ORPHANS_MAX 4096
/* Another server may be about to lock an empty list that is younger
 * than this. */
#define EMPTY_SECONDS 60
/* If a list is larger than this, the next session gets a new one. */
#define ROTATE_BYTES (PLACEHOLDER_LIST_MAX_BYTES / 2)

struct placeholder_file {
	TAILQ_ENTRY(placeholder_file) link;
	uid_t uid;
	/* sessions that use it, and `files` while it is the current one */
	unsigned refs;
	bool current;
	bool left_behind; /* a killed runner may have left placeholders */
	int fd;
	char name[NAME_LEN_MAX]; /* empty: the list is only in memory */
};

static TAILQ_HEAD(, placeholder_file) files = TAILQ_HEAD_INITIALIZER(files);
static int directory = -1;

/* --- the directory ------------------------------------------------------ */

/* A directory that another user can change is not used. */
static int
open_own(int at, const char *name, bool checked)
{
	struct stat st;
	int fd;

	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 &&
	    (!checked || (st.st_uid == geteuid() &&
			     !(st.st_mode & (S_IWGRP | S_IWOTH)))))
		return fd;
	close(fd);
	return -EPERM;
}

/* Opens a directory below `place`, if this exists. The last two names are
 * execd's own and are made. */
static int
open_below(const char *place, const char *const *names, size_t n)
{
	int at = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (at < 0)
		return -errno;
	for (size_t i = 0; i < n && at >= 0; i++) {
		int next = open_own(at, names[i], i + 2 >= n);

		close(at);
		at = next;
	}
	return at;
}

static int
open_of_user(void)
{
	static const char *const names[] = { ".local", "state", "execd",
		"masks" };
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (state != NULL && state[0] == '/')
		return open_below(state, names + 2, 2);
	return home != NULL && home[0] == '/' ? open_below(home, names, 4)
					      : -ENOENT;
}

/* Root's execd leaves the directory to the broker that it starts. systemd makes
 * one for the user of a broker that it starts itself. */
static int
open_of_root(void)
{
	static const char *const names[] = { "execd", "masks" };
	const char *state = getenv("STATE_DIRECTORY");
	const char *given = getenv(PLACEHOLDERS_VARIABLE);

	if (given != NULL)
		return fcntl(atoi(given), F_DUPFD_CLOEXEC, CONTROL_FD + 1);
	if (state != NULL && state[0] == '/')
		return open_below(state, names + 1, 1);
	return -ENOENT;
}

/* --- lists of dead servers ---------------------------------------------- */

static struct identity *
find_identity(const struct broker *m, uid_t uid)
{
	for (size_t i = 0; i < m->conf->nidentities; i++)
		if (m->conf->identities[i]->uid == uid)
			return m->conf->identities[i];
	return NULL;
}

static bool
read_uid(const char *name, uid_t *uid)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(name, &end, 10);
	*uid = (uid_t)n;
	return name[0] >= '0' && name[0] <= '9' && *end == '-' && errno == 0 &&
	       n == *uid && strlen(name) < NAME_LEN_MAX;
}

/* Removes an empty list if no server can be about to lock it. */
static void
remove_empty(const char *name, const struct stat *st)
{
	if (st->st_mtime < time(NULL) - EMPTY_SECONDS)
		unlinkat(directory, name, 0);
}

static void
cleanup_orphan(const struct broker *m, const char *name, uid_t uid)
{
	_cleanup_close_ int fd =
	    openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct identity *id = find_identity(m, uid);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    flock(fd, LOCK_EX | LOCK_NB) < 0)
		return;
	if (st.st_size == 0) {
		remove_empty(name, &st);
		return;
	}
	if (st.st_size <= PLACEHOLDER_LIST_HEADER) {
		unlinkat(directory, name, 0);
		return;
	}
	if (id == NULL || (m->root && uid == 0)) {
		log_warn(0,
		    "placeholders of user %u were left behind, and no "
		    "identity is that user: %s stays",
		    (unsigned)uid, name);
		return;
	}
	log_info("removing what a stop left behind for %s", id->name);
	if (pwrite(fd, PLACEHOLDER_LIST_ORPHAN, 1, 0) == 1)
		placeholder_cleanup(id, fd);
}

static void
cleanup_orphans(const struct broker *m)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	uid_t uid;

	for (size_t n = 0;
	     dir != NULL && n < ORPHANS_MAX && (e = readdir(dir)) != NULL;)
		if (read_uid(e->d_name, &uid)) {
			cleanup_orphan(m, e->d_name, uid);
			n++;
		}
	if (dir != NULL)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

void
placeholder_files_begin(const struct broker *m)
{
	directory = m->root ? open_of_root() : open_of_user();
	if (directory >= 0)
		cleanup_orphans(m);
	else
		log_warn(directory,
		    "no directory for the lists of placeholders: after a hard "
		    "stop placeholders stay in the trees of users");
}

void
placeholder_files_look(const struct broker *m)
{
	if (directory >= 0)
		cleanup_orphans(m);
}

/* --- our own list ------------------------------------------------------- */

static int
make_named(struct placeholder_file *f, uint64_t r)
{
	int fd;

	snprintf(
	    f->name, sizeof(f->name), "%u-%016" PRIx64, (unsigned)f->uid, r);
	fd = openat(directory, f->name,
	    O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	close(fd); /* another server's start looks at it as an orphan */
	return -EEXIST;
}

static int
make_unnamed(struct placeholder_file *f)
{
	int fd = memfd_create("execd placeholders", MFD_CLOEXEC);

	f->name[0] = '\0';
	return fd < 0 || fcntl(fd, F_SETFL, O_APPEND) < 0 ? -errno : fd;
}

static int
write_header(int fd)
{
	char text[PLACEHOLDER_LIST_HEADER + 1];
	uint64_t key[2];

	if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
		return -EIO;
	snprintf(text, sizeof(text),
	    PLACEHOLDER_LIST_LIVE "%016" PRIx64 "%016" PRIx64, key[0], key[1]);
	return write(fd, text, PLACEHOLDER_LIST_HEADER) ==
		       PLACEHOLDER_LIST_HEADER
		   ? 0
		   : -EIO;
}

static int
make(struct placeholder_file *f)
{
	int fd = -ENOENT;
	uint64_t r;

	for (int i = 0; i < CREATE_TRIES && directory >= 0 && fd < 0; i++) {
		if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
			return -EIO;
		fd = make_named(f, r);
		if (fd < 0 && fd != -EEXIST)
			break;
	}
	if (fd < 0)
		fd = make_unnamed(f);
	if (fd >= 0 && write_header(fd) < 0) {
		close(fd);
		return -EIO;
	}
	return fd;
}

static struct placeholder_file *
find_current(uid_t uid)
{
	struct placeholder_file *f;

	TAILQ_FOREACH (f, &files, link)
		if (f->current && f->uid == uid)
			return f;
	return NULL;
}

static void
drop(struct placeholder_file *f)
{
	if (--f->refs > 0)
		return;
	if (!f->left_behind && f->name[0] != '\0')
		unlinkat(directory, f->name, 0);
	TAILQ_REMOVE(&files, f, link);
	close(f->fd);
	free(f);
}

static void
retire(struct placeholder_file *f)
{
	f->current = false;
	drop(f);
}

static bool
is_large(const struct placeholder_file *f)
{
	struct stat st;

	return fstat(f->fd, &st) == 0 && st.st_size > ROTATE_BYTES;
}

struct placeholder_file *
placeholder_file_get(const struct identity *id)
{
	struct placeholder_file *f = find_current(id->uid);

	if (f != NULL && is_large(f)) {
		retire(f);
		f = NULL;
	}
	if (f == NULL) {
		f = xcalloc(1, sizeof(*f));
		f->uid = id->uid;
		f->fd = make(f);
		if (f->fd < 0) {
			log_error(
			    f->fd, "a list of placeholders for %s", id->name);
			free(f);
			return NULL;
		}
		f->refs = 1;
		f->current = true;
		TAILQ_INSERT_HEAD(&files, f, link);
	}
	f->refs++;
	return f;
}

int
placeholder_file_fd(const struct placeholder_file *f)
{
	return f != NULL ? f->fd : -1;
}

void
placeholder_file_put(struct placeholder_file *f, bool left_behind)
{
	if (f == NULL)
		return;
	f->left_behind |= left_behind;
	drop(f);
}

void
placeholder_files_end(void)
{
	struct placeholder_file *f, *next;

	for (f = TAILQ_FIRST(&files); f != NULL; f = next) {
		next = TAILQ_NEXT(f, link);
		if (f->current)
			retire(f);
	}
}
