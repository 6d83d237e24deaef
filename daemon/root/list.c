/* SPDX-License-Identifier: ISC */
/*
 * The list of what a broker may use.
 */
#include "list.h"

#include <sys/mman.h>

#include "disk.h"
#include "saved.h"

static bool
listens_there(const struct list *l, const char *path)
{
	for (size_t i = 0; l != NULL && i < l->nplaces; i++)
		if (l->places[i].fd >= 0 &&
		    strcmp(l->places[i].what.path, path) == 0)
			return true;
	return false;
}

static void
hang_up(struct listed_place *p, const struct list *next)
{
	int listening = steal_fd(&p->fd), fd = -1;

	if (listening < 0)
		return;
	if (p->what.path[0] != '\0' && !listens_there(next, p->what.path))
		fd = disk_do(TASK_UNBIND, &p->what, listening);
	close(listening);
	if (fd >= 0)
		close(fd);
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

/* An older version kept the mode of a file beside its copy. */
static void
save_mode(struct saved *s, int copy)
{
	struct {
		uint8_t none[196];
		uint32_t uid, mode;
	} found;

	if (s->version >= 8)
		return;
	saved_bytes(s, &found, sizeof(found));
	fchmod(copy, (found.mode & 0777) | (found.uid ? 0 : COPY_OF_ROOTS));
}

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
		save_mode(s, f->fd);
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
list_add_user(struct list *l, const struct spawn_user *o)
{
	const struct control_user *u = &o->who;
	bool root = geteuid() == 0;

	if (u->number != l->nusers || l->nusers == LIST_USERS_MAX)
		return -EBADMSG;
	if (u->uid == 0 || u->uid == UINT32_MAX || u->gid == UINT32_MAX ||
	    (!root && u->uid != geteuid()))
		return -EPERM;
	l->users = xreallocarray(l->users, l->nusers + 1, sizeof(*l->users));
	l->users[l->nusers++] = *o;
	return 0;
}

int
list_narrow_user(struct list *l, const struct spawn_user *now)
{
	struct spawn_user *o;

	if (now->who.number >= l->nusers)
		return -EBADMSG;
	o = &l->users[now->who.number];
	if (memcmp(&o->who, &now->who, sizeof(o->who)) != 0 ||
	    !spawn_user_is_within(now, o))
		return -EPERM;
	spawn_user_clear(o);
	*o = *now;
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

/* A child works there. */
static int
ask(enum task_kind kind, const struct control_place *what, int own,
    struct control_found *found)
{
	int fd = disk_do(kind, what, own);

	found->later = fd >= 0;
	found->error = fd < 0 ? (uint32_t)-fd : 0;
	return fd < 0 ? -1 : fd;
}

/* Returns a copy of the socket that goes on, or -1. */
static int
take_over(const struct list *old, const struct control_place *what)
{
	for (size_t i = old == NULL ? 0 : old->nplaces; i-- > 0;) {
		const struct listed_place *p = &old->places[i];

		if (p->fd >= 0 && strcmp(p->what.name, what->name) == 0)
			return fcntl(p->fd, F_DUPFD_CLOEXEC, CONTROL_FD + 1);
	}
	return -1;
}

static int
make_socket(const struct control_place *p)
{
	sa_family_t family;

	memcpy(&family, p->address, sizeof(family));
	if (p->path[0] != '\0')
		family = AF_UNIX;
	else if (family != AF_INET && family != AF_INET6)
		return -1;
	return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int
add_listener(
    struct listed_place *p, const struct list *old, struct control_found *found)
{
	int before = p->what.file == PLACE_ANEW ? -1 : take_over(old, &p->what);

	p->fd = before >= 0 ? before : make_socket(&p->what);
	return ask(
	    before >= 0 ? TASK_PERMIT : TASK_BIND, &p->what, p->fd, found);
}

int
list_add_place(struct list *l, const struct control_place *what,
    const struct list *old, bool check, struct control_found *found)
{
	struct listed_place *p;

	if (what->number != l->nplaces || what->kind >= PLACE_KINDS ||
	    l->nplaces == LIST_PLACES_MAX)
		return -EBADMSG;
	l->places =
	    xreallocarray(l->places, l->nplaces + 1, sizeof(*l->places));
	p = &l->places[l->nplaces++];
	*p = (struct listed_place){ -1, *what };
	return what->kind == PLACE_LISTENER && !check
		   ? add_listener(p, old, found)
		   : ask(check ? TASK_TRY_OPEN : TASK_OPEN, what, -1, found);
}

int
list_open(const struct list *l, uint32_t number, struct control_found *found)
{
	const struct listed_place *p = find_place(l, number, PLACE_AUDIT_FILE);

	if (p == NULL)
		p = find_place(l, number, PLACE_AUDIT_SOCKET);
	return p == NULL ? -EBADMSG : ask(TASK_OPEN, &p->what, -1, found);
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
list_record(const struct list *l, uint32_t number, const char *name,
    struct control_found *found)
{
	const struct listed_place *p = find_place(l, number, PLACE_RECORDINGS);
	struct control_place what;

	if (p == NULL || !is_file_name(name))
		return -EBADMSG;
	what = p->what;
	snprintf(what.name, sizeof(what.name), "%s", name);
	return ask(TASK_RECORD, &what, -1, found);
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
		if (strcmp(l->files[i].path, path) == 0 &&
		    fcntl(l->files[i].fd, F_GET_SEALS) & F_SEAL_WRITE)
			return &l->files[i];
	return NULL;
}

int
list_add_file(struct list *l, const char *path, const struct list *old,
    struct control_found *found)
{
	const struct listed_file *before = list_find_file(old, path);
	struct control_place what = { .path = "" };
	struct listed_file *f;

	if (path[0] != '/' || l->nfiles == LIST_FILES_MAX)
		return -EBADMSG;
	l->files = xreallocarray(l->files, l->nfiles + 1, sizeof(*l->files));
	f = &l->files[l->nfiles];
	snprintf(f->path, sizeof(f->path), "%s", path);
	f->fd = before != NULL
		    ? fcntl(before->fd, F_DUPFD_CLOEXEC, CONTROL_FD + 1)
		    : memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (f->fd < 0) {
		found->error = (uint32_t)errno;
		return -1;
	}
	l->nfiles++;
	memcpy(what.path, f->path, sizeof(what.path));
	return before != NULL ? f->fd : ask(TASK_COPY, &what, f->fd, found);
}
