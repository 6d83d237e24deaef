/* SPDX-License-Identifier: ISC */
/*
 * The list of what a broker may use.
 */
#include "list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "place.h"
#include "saved.h"
#include "trusted.h"
#include "util.h"

struct list *
list_new(void)
{
	struct list *l = xcalloc(1, sizeof(*l));

	TAILQ_INIT(&l->places);
	TAILQ_INIT(&l->files);
	return l;
}

static bool
listens_there(const struct list *l, const char *path)
{
	const struct listed_place *p;

	if (l == NULL)
		return false;
	TAILQ_FOREACH (p, &l->places, link)
		if (p->fd >= 0 && strcmp(p->what.path, path) == 0)
			return true;
	return false;
}

static void
hang_up(struct listed_place *p, const struct list *next)
{
	if (p->fd < 0)
		return;
	close(steal_fd(&p->fd));
	if (p->what.path[0] != '\0' && !listens_there(next, p->what.path))
		unlink(p->what.path);
}

void
list_free(struct list *l, const struct list *next)
{
	struct listed_place *p;
	struct listed_file *f;

	if (l == NULL)
		return;
	for (size_t i = 0; i < l->nusers; i++)
		spawn_user_clear(&l->users[i]);
	free(l->users);
	while ((p = TAILQ_FIRST(&l->places)) != NULL) {
		TAILQ_REMOVE(&l->places, p, link);
		hang_up(p, next);
		free(p);
	}
	while ((f = TAILQ_FIRST(&l->files)) != NULL) {
		TAILQ_REMOVE(&l->files, f, link);
		close(f->fd);
		free(f);
	}
	free(l);
}

/* --- for the next version ------------------------------------------------ */

/* The state of version 2 had the groups and the environment one by one. */
static void
read_user_2(struct saved *s, struct spawn_user *o)
{
	uint32_t groups, variables, len;

	SAVE(s, groups);
	SAVE(s, variables);
	if (s->failed || groups > SPAWN_USER_GROUPS_MAX) {
		s->failed = true;
		return;
	}
	o->size = sizeof(groups) * (groups + 1);
	o->list = xmalloc(o->size);
	o->list[0] = groups;
	saved_bytes(s, o->list + 1, o->size - sizeof(groups));
	for (; variables > 0 && !s->failed; variables--) {
		saved_bytes(s, &len, sizeof(len));
		if (s->failed || len > SPAWN_USER_LIST_MAX - o->size)
			s->failed = true;
		else {
			o->list = xreallocarray(o->list, o->size + len + 1, 1);
			saved_bytes(s, (char *)o->list + o->size, len);
			o->size += len + 1;
			((char *)o->list)[o->size - 1] = '\0';
		}
	}
}

static void
save_user(struct saved *s, struct spawn_user *o)
{
	saved_bytes(s, &o->who, sizeof(o->who));
	if (s->version == 2) {
		read_user_2(s, o);
		return;
	}
	SAVE(s, o->size);
	if (s->mode == SAVED_READ) {
		if (o->size > SPAWN_USER_LIST_MAX)
			s->failed = true;
		if (s->failed)
			return;
		o->list = xmalloc(o->size);
	}
	saved_bytes(s, o->list, o->size);
	if (s->mode == SAVED_READ && !spawn_user_is_list(o->list, o->size))
		s->failed = true;
}

static void
save_users(struct saved *s, struct list *l)
{
	uint32_t n = (uint32_t)l->nusers;

	SAVE(s, n);
	if (s->mode == SAVED_READ && (s->failed || n > LIST_USERS_MAX)) {
		s->failed = true;
		return;
	}
	if (s->mode == SAVED_READ)
		l->users = xcalloc(n + 1, sizeof(*l->users));
	for (l->nusers = 0; l->nusers < n && !s->failed; l->nusers++)
		save_user(s, &l->users[l->nusers]);
}

static void
save_places(struct saved *s, struct list *l)
{
	struct listed_place *p = TAILQ_FIRST(&l->places);
	uint32_t n = (uint32_t)l->nplaces;

	SAVE(s, n);
	for (; n > 0 && !s->failed; n--, p = TAILQ_NEXT(p, link)) {
		if (s->mode == SAVED_READ) {
			p = xcalloc(1, sizeof(*p));
			TAILQ_INSERT_TAIL(&l->places, p, link);
			l->nplaces++;
		}
		saved_fd(s, &p->fd);
		saved_bytes(s, &p->what, sizeof(p->what));
	}
}

static void
save_files(struct saved *s, struct list *l)
{
	struct listed_file *f = TAILQ_FIRST(&l->files);
	uint32_t n = (uint32_t)l->nfiles;

	SAVE(s, n);
	for (; n > 0 && !s->failed; n--, f = TAILQ_NEXT(f, link)) {
		if (s->mode == SAVED_READ) {
			f = xcalloc(1, sizeof(*f));
			TAILQ_INSERT_TAIL(&l->files, f, link);
			l->nfiles++;
		}
		saved_fd(s, &f->fd);
		saved_bytes(s, &f->found, sizeof(f->found));
		saved_text(s, f->path, sizeof(f->path));
	}
}

void
list_save(struct saved *s, struct list **l)
{
	bool there = *l != NULL;

	SAVE(s, there);
	if (!there || s->failed)
		return;
	if (s->mode == SAVED_READ)
		*l = list_new();
	if (*l == NULL)
		return;
	save_users(s, *l);
	save_places(s, *l);
	save_files(s, *l);
	saved_bytes(s, &(*l)->seal, sizeof((*l)->seal));
}

/* --- users --------------------------------------------------------------- */

/* A user is never root, and in single-user mode nobody else. */
int
list_add_user(struct list *l, const struct control_user *u, int fd)
{
	bool root = geteuid() == 0;
	int err;

	if (u->number != l->nusers || l->nusers == LIST_USERS_MAX)
		return -EBADMSG;
	if (u->uid == 0 || u->uid == UINT32_MAX || u->gid == UINT32_MAX ||
	    (!root && u->uid != geteuid()))
		return -EPERM;
	l->users = xreallocarray(l->users, l->nusers + 1, sizeof(*l->users));
	err = spawn_user_read(&l->users[l->nusers], u, fd);
	l->nusers += err == 0;
	return err;
}

const struct spawn_user *
list_user(const struct list *l, uint32_t number)
{
	return number < l->nusers ? &l->users[number] : NULL;
}

/* --- places ------------------------------------------------------------- */

static struct listed_place *
find_place(const struct list *l, uint32_t number)
{
	struct listed_place *p;

	TAILQ_FOREACH (p, &l->places, link)
		if (p->what.number == number)
			return p;
	return NULL;
}

/* Returns the socket that goes on, which is then the caller's, or -ENOENT. */
static int
take_over(const struct list *old, const struct control_place *what)
{
	const struct listed_place *p;
	int fd;

	if (old == NULL || what->kind != PLACE_LISTENER)
		return -ENOENT;
	TAILQ_FOREACH (p, &old->places, link) {
		if (p->fd < 0 || strcmp(p->what.name, what->name) != 0)
			continue;
		fd = fcntl(p->fd, F_DUPFD_CLOEXEC, CONTROL_FD + 1);
		return fd < 0 ? -errno : fd;
	}
	return -ENOENT;
}

bool
list_is_kept(const struct control_place *p)
{
	return p->kind == PLACE_LISTENER;
}

int
list_add_place(struct list *l, const struct control_place *what,
    const struct list *old, bool check, struct control_found *found)
{
	struct listed_place *p;
	int fd;

	if (what->number != l->nplaces || what->kind >= PLACE_KINDS ||
	    l->nplaces == LIST_PLACES_MAX)
		return -EBADMSG;
	fd = take_over(old, what);
	if (fd >= 0 && what->path[0] != '\0')
		found->error = (uint32_t)-place_permit(what);
	if (fd == -ENOENT)
		fd = place_open(what, check, found->why, sizeof(found->why));
	if (fd < 0 && fd != PLACE_NONE)
		found->error = (uint32_t)-fd;
	if (fd == PLACE_NONE)
		fd = -1;
	if (found->error != 0) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	p = xcalloc(1, sizeof(*p));
	p->what = *what;
	p->fd = list_is_kept(what) ? fd : -1;
	TAILQ_INSERT_TAIL(&l->places, p, link);
	l->nplaces++;
	return fd;
}

int
list_open(const struct list *l, uint32_t number)
{
	const struct listed_place *p = find_place(l, number);
	char why[CONTROL_WHY_MAX];

	if (p == NULL || (p->what.kind != PLACE_AUDIT_FILE &&
			     p->what.kind != PLACE_AUDIT_SOCKET))
		return -EBADMSG;
	return place_open(&p->what, false, why, sizeof(why));
}

/* The name becomes a name in a directory. */
static bool
is_file_name(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && name[0] != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
			    "WXYZ0123456789-.") == len;
}

int
list_record(const struct list *l, uint32_t number, const char *name)
{
	const struct listed_place *p = find_place(l, number);
	char why[CONTROL_WHY_MAX];
	_cleanup_close_ int dir = -1;
	int fd;

	if (p == NULL || p->what.kind != PLACE_RECORDINGS ||
	    !is_file_name(name))
		return -EBADMSG;
	dir = trusted_directory(p->what.path, why, sizeof(why));
	if (dir < 0)
		return dir;
	fd = openat(dir, name,
	    O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	    0600);
	return fd < 0 ? -errno : fd;
}

int
list_close(struct list *l, uint32_t number)
{
	struct listed_place *p = find_place(l, number);

	if (p == NULL || p->what.kind != PLACE_LISTENER)
		return -EBADMSG;
	hang_up(p, NULL);
	return 0;
}

/* --- files --------------------------------------------------------------- */

const struct listed_file *
list_find_file(const struct list *l, const char *path)
{
	const struct listed_file *f;

	if (l == NULL)
		return NULL;
	TAILQ_FOREACH (f, &l->files, link)
		if (strcmp(f->path, path) == 0)
			return f;
	return NULL;
}

/* Copies from the disk. */
static int
copy_file(const char *path, struct control_found *found)
{
	struct stat st;
	_cleanup_close_ int fd =
	    trusted_open(path, &st, found->why, sizeof(found->why));
	int copy;

	if (fd < 0)
		return fd;
	found->uid = st.st_uid;
	found->mode = st.st_mode & 07777;
	copy = trusted_copy(fd, LIST_FILE_BYTES);
	if (copy < 0)
		snprintf(found->why, sizeof(found->why), "%s", strerror(-copy));
	return copy;
}

int
list_add_file(struct list *l, const char *path, const struct list *old,
    struct control_found *found)
{
	const struct listed_file *before = list_find_file(old, path);
	struct listed_file *f;
	int fd;

	if (path[0] != '/' || l->nfiles == LIST_FILES_MAX)
		return -EBADMSG;
	if (before != NULL) {
		*found = before->found;
		fd = fcntl(before->fd, F_DUPFD_CLOEXEC, CONTROL_FD + 1);
	} else {
		fd = copy_file(path, found);
	}
	if (fd < 0) {
		found->error = (uint32_t)(before != NULL ? errno : -fd);
		return -1;
	}
	f = xcalloc(1, sizeof(*f));
	f->fd = fd;
	f->found = *found;
	snprintf(f->path, sizeof(f->path), "%s", path);
	TAILQ_INSERT_TAIL(&l->files, f, link);
	l->nfiles++;
	return fd;
}
