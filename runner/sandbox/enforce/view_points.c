/* SPDX-License-Identifier: ISC */
/*
 * Mount points in the new root. They are found without following a link, and
 * made if the view itself made the file system.
 */
#include "view_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mounts.h"
#include "util.h"

void
view_step(struct view *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->step, VIEW_STEP_MAX, fmt, ap);
	va_end(ap);
}

static bool
is_own(const struct view *v, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	for (size_t i = 0; i < v->nown; i++)
		if (v->own[i] == st.st_dev)
			return true;
	return false;
}

int
view_own(struct view *v, int fd, bool seal)
{
	struct stat st;
	int root = seal ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;

	if (seal && root < 0)
		return -errno;
	if (fstat(fd, &st) < 0) {
		if (seal)
			close(root);
		return -errno;
	}
	if (v->nown == v->own_cap) {
		v->own_cap = v->own_cap ? v->own_cap * 2 : 8;
		v->own = xreallocarray(v->own, v->own_cap, sizeof(*v->own));
		v->own_roots = xreallocarray(
		    v->own_roots, v->own_cap, sizeof(*v->own_roots));
	}
	v->own[v->nown] = st.st_dev;
	v->own_roots[v->nown++] = root;
	return 0;
}

int
view_tmpfs(struct view *v, int target, const char *path, unsigned flags,
    const char *options)
{
	_cleanup_close_ int fd = -1;
	char name[32];

	/* The working directory is the old /proc. */
	snprintf(name, sizeof(name), "self/fd/%d", target);
	if (mount("execd", name, "tmpfs", flags, options) < 0)
		return -errno;
	if (path == NULL)
		return 0;
	fd = mounts_open(v->root, path);
	return fd < 0 ? fd : view_own(v, fd, true);
}

/*
 * Walks one component. A missing one is made if the view made the file system.
 */
static int
step_into(struct view *v, int at, const char *name, bool directory)
{
	int fd = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), err;

	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	if (!is_own(v, at))
		return -ESTALE;
	if (directory) {
		err = mkdirat(at, name, 0755);
	} else {
		fd = openat(at, name,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
		err = fd < 0 ? -1 : close(fd);
	}
	if (err < 0)
		return -errno;
	fd = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Walks a path and makes missing components. The text is modified. */
static int
make_point(struct view *v, char *text, bool directory)
{
	int at = fcntl(v->root, F_DUPFD_CLOEXEC, 3);

	for (char *next, *name = text; at >= 0; name = next) {
		int fd;

		name += strspn(name, "/");
		if (*name == '\0')
			return at;
		next = name + strcspn(name, "/");
		if (*next == '/')
			*next++ = '\0';
		fd = step_into(v, at, name, directory || *next != '\0');
		close(at);
		if (fd < 0)
			return fd;
		at = fd;
	}
	return -errno;
}

int
view_point(struct view *v, const char *path, bool directory, bool *own)
{
	_cleanup_free_ char *text = NULL;
	int fd = mounts_open(v->root, path);

	if (fd == -ENOENT) {
		text = xstrdup(path);
		fd = make_point(v, text, directory);
	}
	if (fd >= 0)
		*own = is_own(v, fd);
	return fd;
}

int
view_parent(struct view *v, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *parent = xstrndup(path, (size_t)(slash - path));
	bool own;

	*name = slash + 1;
	return view_point(v, *parent ? parent : "/", true, &own);
}
