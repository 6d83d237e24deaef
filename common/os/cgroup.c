/* SPDX-License-Identifier: ISC */
/*
 * Control groups, accessed through descriptors: how they are made and removed.
 * The one that this process is in is found by cgroup_own.c. Limits are in
 * cgroup_limit.c. What is done with the members of a group, and what the kernel
 * counts of them, is in cgroup_members.c.
 */
#include "cgroup.h"

#include <dirent.h>

/* --- groups ------------------------------------------------------------- */

void
cgroup_close(struct cgroup *c)
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		if (c->dirs[i] >= 0)
			close(c->dirs[i]);
		c->dirs[i] = -1;
	}
}

size_t
cgroup_put(
    const struct cgroup *c, uint8_t *hierarchies, int dirs[CGROUP_HIERARCHIES])
{
	size_t n = 0;

	*hierarchies = 0;
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		if (c->dirs[i] < 0)
			continue;
		*hierarchies |= (uint8_t)(1u << i);
		dirs[n++] = c->dirs[i];
	}
	return n;
}

int
cgroup_get(struct cgroup *c, uint8_t hierarchies, const int *dirs, size_t n)
{
	*c = (struct cgroup)CGROUP_NONE;
	if (hierarchies >= 1u << CGROUP_HIERARCHIES ||
	    n != (size_t)__builtin_popcount(hierarchies))
		return -EBADMSG;
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (hierarchies & 1u << i)
			c->dirs[i] = *dirs++;
	return 0;
}

int
cgroup_open_in(int dir, const char *name)
{
	int fd =
	    openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int
make_in(int parent, const char *name)
{
	if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	return cgroup_open_in(parent, name);
}

int
cgroup_make(const struct cgroup *parent, const char *name, struct cgroup *c)
{
	*c = (struct cgroup)CGROUP_NONE;
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		int fd =
		    parent->dirs[i] < 0 ? -1 : make_in(parent->dirs[i], name);

		if (fd < -1) {
			cgroup_close(c);
			cgroup_remove(parent, name);
			return fd;
		}
		c->dirs[i] = fd;
	}
	return 0;
}

int
cgroup_remove(const struct cgroup *parent, const char *name)
{
	int err = 0;

	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (parent->dirs[i] >= 0 &&
		    unlinkat(parent->dirs[i], name, AT_REMOVEDIR) < 0 &&
		    errno != ENOENT)
			err = -errno;
	return err;
}

/* Groups below base: of all sessions, an identity, a session, its user's. */
#define LEVELS (3 + CGROUP_LEVELS_MAX)

/* Calls visit for each directory in a directory. */
static void
each_directory(
    int dir, void (*visit)(int dir, const char *name, int arg), int arg)
{
	int fd = cgroup_open_in(dir, ".");
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL)
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			visit(dir, e->d_name, arg);
	closedir(d);
}

static void
remove_group(int dir, const char *name, int levels)
{
	_cleanup_close_ int fd = levels > 0 ? cgroup_open_in(dir, name) : -1;

	if (fd >= 0)
		each_directory(fd, remove_group, levels - 1);
	unlinkat(dir, name, AT_REMOVEDIR);
}

void
cgroup_remove_below(int dir)
{
	each_directory(dir, remove_group, LEVELS);
}

int
cgroup_remove_tree(const struct cgroup *parent, const char *name)
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (parent->dirs[i] >= 0)
			remove_group(parent->dirs[i], name, LEVELS);
	/* Says what could not be removed. */
	return cgroup_remove(parent, name);
}
