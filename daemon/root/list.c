/* SPDX-License-Identifier: ISC */
/*
 * The list of what a broker may use.
 */
#include "list.h"

#include <sys/stat.h>

#include "base.h"
#include "disk.h"
#include "place.h"
#include "saved.h"
#include "trusted.h"

static bool
listens_there(const struct list *l, const char *path)
{
	for (size_t i = 0; l != NULL && i < l->nplaces; i++)
		if (l->places[i].fd >= 0 &&
		    strcmp(l->places[i].what.path, path) == 0)
			return true;
	return false;
}

static int
remove_socket(const void *path, struct control_found *found)
{
	return unlink(path) < 0 ? -errno : PLACE_NONE;
}

static void
hang_up(struct listed_place *p, const struct list *next)
{
	if (p->fd < 0)
		return;
	close(steal_fd(&p->fd));
	if (p->what.path[0] != '\0' && !listens_there(next, p->what.path))
		disk_do(p->what.path, remove_socket, p->what.path,
		    &(struct control_found){ 0 });
}

void
list_hang_up(struct list *l)
{
	for (size_t i = 0; i < l->nplaces; i++)
		hang_up(&l->places[i], NULL);
}

void
list_free(struct list *l, const struct list *next)
{
	if (l == NULL)
		return;
	for (size_t i = 0; i < l->nusers; i++)
		spawn_user_clear(&l->users[i]);
	for (size_t i = 0; i < l->nplaces; i++)
		hang_up(&l->places[i], next);
	for (size_t i = 0; i < l->nfiles; i++)
		close(l->files[i].fd);
	free(l->users);
	free(l->places);
	free(l->files);
	free(l);
}

/* --- for the next version ------------------------------------------------ */

static void
save_user(struct saved *s, struct spawn_user *o)
{
	saved_bytes(s, &o->who, sizeof(o->who));
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

/* Returns the array that is saved, or a new one for what was. */
static void *
save_array(struct saved *s, void *array, size_t *n, size_t size, size_t max)
{
	uint32_t count = (uint32_t)*n;

	SAVE(s, count);
	if (s->mode != SAVED_READ)
		return array;
	if (count > max)
		s->failed = true;
	*n = s->failed ? 0 : count;
	return xcalloc(*n, size);
}

static void
save_parts(struct saved *s, struct list *l)
{
	l->users = save_array(
	    s, l->users, &l->nusers, sizeof(*l->users), LIST_USERS_MAX);
	for (size_t i = 0; i < l->nusers && !s->failed; i++)
		save_user(s, &l->users[i]);
	l->places = save_array(
	    s, l->places, &l->nplaces, sizeof(*l->places), LIST_PLACES_MAX);
	for (size_t i = 0; i < l->nplaces && !s->failed; i++) {
		saved_fd(s, &l->places[i].fd);
		saved_bytes(s, &l->places[i].what, sizeof(l->places[i].what));
	}
	l->files = save_array(
	    s, l->files, &l->nfiles, sizeof(*l->files), LIST_FILES_MAX);
	for (size_t i = 0; i < l->nfiles && !s->failed; i++) {
		struct listed_file *f = &l->files[i];

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
		*l = xcalloc(1, sizeof(**l));
	save_parts(s, *l);
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

int
list_narrow_user(struct list *l, const struct control_user *u, int fd)
{
	struct spawn_user now, *o;
	int err;

	if (u->number >= l->nusers)
		return -EBADMSG;
	o = &l->users[u->number];
	err = memcmp(&o->who, u, sizeof(*u)) == 0 ? spawn_user_read(&now, u, fd)
						  : -EPERM;
	if (err < 0)
		return err;
	if (!spawn_user_is_within(&now, o)) {
		spawn_user_clear(&now);
		return -EPERM;
	}
	spawn_user_clear(o);
	*o = now;
	return 0;
}

const struct spawn_user *
list_user(const struct list *l, uint32_t number)
{
	return number < l->nusers ? &l->users[number] : NULL;
}

/* --- places ------------------------------------------------------------- */

/* Returns the place if it is of that kind, or NULL. */
static struct listed_place *
find_place(const struct list *l, uint32_t number, enum control_place_kind kind)
{
	return number < l->nplaces && l->places[number].what.kind == kind
		   ? &l->places[number]
		   : NULL;
}

static int
permit(const void *what, struct control_found *found)
{
	int err = place_permit(what);

	return err < 0 ? err : PLACE_NONE;
}

/* Returns the socket that goes on, which is then the caller's, or -ENOENT, also
 * if the file of a unix socket was removed. */
static int
take_over(const struct list *old, const struct control_place *what,
    struct control_found *found)
{
	int fd, err = PLACE_NONE;

	if (old == NULL || what->kind != PLACE_LISTENER)
		return -ENOENT;
	for (size_t i = 0; i < old->nplaces; i++) {
		const struct listed_place *p = &old->places[i];

		if (p->fd < 0 || strcmp(p->what.name, what->name) != 0)
			continue;
		if (what->path[0] != '\0')
			err = disk_do(what->path, permit, what, found);
		if (err != PLACE_NONE)
			return err;
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

static int
open_place(const void *what, struct control_found *found)
{
	return place_open(what, false, found->why, sizeof(found->why));
}

static int
check_place(const void *what, struct control_found *found)
{
	return place_open(what, true, found->why, sizeof(found->why));
}

int
list_add_place(struct list *l, const struct control_place *what,
    const struct list *old, bool check, struct control_found *found)
{
	int fd;

	if (what->number != l->nplaces || what->kind >= PLACE_KINDS ||
	    l->nplaces == LIST_PLACES_MAX)
		return -EBADMSG;
	fd = take_over(old, what, found);
	if (fd == -ENOENT)
		fd = disk_do(
		    what->path, check ? check_place : open_place, what, found);
	if (fd < 0 && fd != PLACE_NONE)
		found->error = (uint32_t)-fd;
	if (fd == PLACE_NONE)
		fd = -1;
	if (found->error != 0) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	l->places =
	    xreallocarray(l->places, l->nplaces + 1, sizeof(*l->places));
	l->places[l->nplaces++] =
	    (struct listed_place){ list_is_kept(what) ? fd : -1, *what };
	return fd;
}

int
list_open(const struct list *l, uint32_t number)
{
	const struct listed_place *p = find_place(l, number, PLACE_AUDIT_FILE);
	struct control_found found;

	if (p == NULL)
		p = find_place(l, number, PLACE_AUDIT_SOCKET);
	if (p == NULL)
		return -EBADMSG;
	return disk_do(p->what.path, open_place, &p->what, &found);
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

struct record {
	const char *directory, *name;
};

static int
make_record(const void *arg, struct control_found *found)
{
	const struct record *r = arg;
	_cleanup_close_ int dir =
	    trusted_directory(r->directory, found->why, sizeof(found->why));
	int fd;

	if (dir < 0)
		return dir;
	fd = openat(dir, r->name,
	    O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	    0600);
	return fd < 0 ? -errno : fd;
}

int
list_record(const struct list *l, uint32_t number, const char *name)
{
	const struct listed_place *p = find_place(l, number, PLACE_RECORDINGS);
	struct control_found found;

	if (p == NULL || !is_file_name(name))
		return -EBADMSG;
	return disk_do(p->what.path, make_record,
	    &(struct record){ p->what.path, name }, &found);
}

int
list_close(struct list *l, uint32_t number)
{
	struct listed_place *p = find_place(l, number, PLACE_LISTENER);

	if (p == NULL)
		return -EBADMSG;
	hang_up(p, NULL);
	return 0;
}

/* --- files --------------------------------------------------------------- */

const struct listed_file *
list_find_file(const struct list *l, const char *path)
{
	for (size_t i = 0; l != NULL && i < l->nfiles; i++)
		if (strcmp(l->files[i].path, path) == 0)
			return &l->files[i];
	return NULL;
}

/* Copies from the disk. */
static int
copy_file(const void *path, struct control_found *found)
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
		fd = disk_do(path, copy_file, path, found);
	}
	if (fd < 0) {
		found->error = (uint32_t)(before != NULL ? errno : -fd);
		return -1;
	}
	l->files = xreallocarray(l->files, l->nfiles + 1, sizeof(*l->files));
	f = &l->files[l->nfiles++];
	*f = (struct listed_file){ fd, *found, "" };
	snprintf(f->path, sizeof(f->path), "%s", path);
	return fd;
}
