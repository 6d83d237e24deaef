/* SPDX-License-Identifier: ISC */
/*
 * Where else a file is seen: a bind mount, or another mount of its file system,
 * shows it by another path. It has the same device and inode there, and what is
 * denied is the file.
 */
#include "base.h"
#include "resolve_parts.h"

/* Returns what follows the directory in the path, "" if it is the directory
 * itself, or NULL if the path is not below it. */
static const char *
below(const char *path, const char *directory)
{
	size_t n = strcmp(directory, "/") == 0 ? 0 : strlen(directory);

	return strncmp(path, directory, n) == 0 &&
		       (path[n] == '/' || path[n] == '\0')
		   ? path + n
		   : NULL;
}

static char *
append(const char *directory, const char *rest)
{
	return strcmp(directory, "/") == 0 && *rest != '\0'
		   ? xstrdup(rest)
		   : xasprintf("%s%s", directory, rest);
}

/* Of a path that may not be looked at, the nearest directory that may tells. */
static const struct fs_mount *
mount_of(const struct resolver *s, const char *path)
{
	const struct fs_view *view = s->tree.view;
	_cleanup_free_ char *at = xstrdup(path);
	int id = view->mount_of(view->owner, at);
	char *slash;

	while (
	    id < 0 && (slash = strrchr(at, '/')) != NULL && slash[1] != '\0') {
		slash[slash == at] = '\0';
		id = view->mount_of(view->owner, at);
	}
	for (size_t i = 0; i < s->nmounts; i++)
		if (s->mounts[i].id == id)
			return &s->mounts[i];
	return NULL;
}

/* Returns where that mount shows the path inside of its file system, or the
 * place of the mount if that lies below the path; NULL: nowhere. */
static char *
seen_at(const struct resolver *s, const struct fs_mount *m, const char *inside)
{
	const struct fs_view *view = s->tree.view;
	const char *rest = below(inside, m->root);
	_cleanup_free_ char *at = NULL;

	if (rest == NULL && below(m->root, inside) == NULL)
		return NULL;
	at = append(m->point, rest != NULL ? rest : "");
	/* Another mount may cover it. */
	return view->mount_of(view->owner, at) == m->id ? steal_pointer(&at)
							: NULL;
}

int
resolve_elsewhere(struct resolver *s, const char *path,
    int (*deny)(struct resolver *s, const char *path))
{
	const struct fs_view *view = s->tree.view;
	const struct fs_mount *own;
	_cleanup_free_ char *inside = NULL;
	const char *rest;
	int err = 0;

	if (view->mounts != NULL && s->mounts == NULL)
		err = view->mounts(view->owner, &s->mounts, &s->nmounts);
	if (err < 0)
		return err;
	own = s->nmounts > 0 ? mount_of(s, path) : NULL;
	rest = own != NULL ? below(path, own->point) : NULL;
	if (rest == NULL)
		return 0;
	inside = append(own->root, rest);
	for (size_t i = 0; i < s->nmounts && err == 0; i++) {
		const struct fs_mount *m = &s->mounts[i];
		_cleanup_free_ char *at = NULL;

		if (m != own && m->device == own->device)
			at = seen_at(s, m, inside);
		if (at != NULL && strcmp(at, path) != 0)
			err = deny(s, at);
	}
	return err;
}
