/* SPDX-License-Identifier: ISC */
#include "path_set.h"

#include <glob.h>

static bool
is_same(const struct fs_node *a, const struct stat *st)
{
	return a->device == st->st_dev && a->inode == st->st_ino;
}

static bool
has(const struct paths *p, const struct stat *st)
{
	for (size_t i = 0; i < p->count; i++)
		if (is_same(&p->items[i], st))
			return true;
	return false;
}

static void
put(struct paths *p, struct fs_node node)
{
	if (p->count == p->cap) {
		p->cap = p->cap * 2 + 8;
		p->items = xreallocarray(p->items, p->cap, sizeof(*p->items));
	}
	p->items[p->count++] = node;
}

static bool
add(struct paths *p, int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	if (!has(p, &st))
		put(p, (struct fs_node){
			   .device = st.st_dev, .inode = st.st_ino });
	return true;
}

void
path_set_copy(struct paths *p, const struct paths *from)
{
	for (size_t i = 0; i < from->count; i++)
		put(p, from->items[i]);
}

bool
path_set_add(struct paths *p, const char *path)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);

	return add(p, fd);
}

/*
 * Goes one name down from *fd, which is closed. Returns false and sets *fd to
 * -1 if the name is missing or a link.
 */
static bool
step(int *fd, const char *name)
{
	int next = openat(*fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	close(*fd);
	*fd = next;
	if (next < 0 || (fstat(next, &st) == 0 && !S_ISLNK(st.st_mode)))
		return next >= 0;
	close(next);
	*fd = -1;
	return false;
}

/*
 * Adds what lies at `rest` below the directory `from`, which ends with a slash.
 */
static void
add_below(struct paths *p, const char *from, const char *rest)
{
	_cleanup_close_ int fd = open(from, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *names = xstrdup(rest);
	char *at = names, *name;

	while (fd >= 0 && (name = strsep(&at, "/")) != NULL)
		if (*name != '\0')
			step(&fd, name);
	add(p, fd);
}

static void
add_pattern(struct paths *p, const char *pattern)
{
	_cleanup_free_ char *from = xstrdup(pattern);
	glob_t g = { 0 };
	size_t len;

	from[strcspn(from, "*?[\\")] = '\0';
	if (strcmp(from, pattern) == 0) {
		path_set_add(p, pattern);
		return;
	}
	len = (size_t)(strrchr(from, '/') - from) + 1;
	from[len] = '\0';
	if (glob(pattern, GLOB_NOSORT, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc; i++)
			add_below(p, from, g.gl_pathv[i] + len);
	globfree(&g);
}

void
path_set_add_patterns(struct paths *p, const char *const *patterns)
{
	for (; *patterns != NULL; patterns++)
		if (**patterns == '/')
			add_pattern(p, *patterns);
}

bool
path_set_hold(
    const struct paths *p, const char *path, const struct fs_node *seen)
{
	_cleanup_close_ int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *names = xstrdup(path);
	char *at = names, *name;
	bool inside = false;
	struct stat st;

	for (;;) {
		if (fd < 0 || fstat(fd, &st) < 0)
			return false;
		inside |= has(p, &st);
		while ((name = strsep(&at, "/")) != NULL && *name == '\0')
			;
		if (name == NULL)
			return inside && (seen == NULL || is_same(seen, &st));
		step(&fd, name);
	}
}

/* Resolves all links. A missing path becomes its nearest existing directory. */
static char *
real_path(const char *path)
{
	_cleanup_free_ char *at = xstrdup(path);
	char *real, *slash;

	while ((real = realpath(*at ? at : "/", NULL)) == NULL) {
		slash = strrchr(at, '/');
		if (slash == NULL)
			return xstrdup("/");
		*slash = '\0';
	}
	return real;
}

bool
path_set_hold_target(
    const struct paths *p, const char *path, struct paths *found)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
	_cleanup_free_ char *real = p != NULL ? real_path(path) : NULL;
	struct fs_node seen = { .type = FS_MISSING };
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		seen = (struct fs_node){ FS_OTHER, st.st_dev, st.st_ino };
	if (p != NULL && !path_set_hold(p, real, fd >= 0 ? &seen : NULL))
		return false;
	add(found, fd);
	return true;
}

void
path_set_clear(struct paths *p)
{
	free(p->items);
	*p = (struct paths){ 0 };
}
