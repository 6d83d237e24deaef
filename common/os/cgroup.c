/* SPDX-License-Identifier: ISC */
/*
 * Control groups, accessed through descriptors. Limits are in cgroup_limit.c,
 * who joins in cgroup_join.c, what the kernel counts in cgroup_count.c, and the
 * end in cgroup_kill.c.
 */
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup_file.h"
#include "util.h"

/* --- files -------------------------------------------------------------- */

int
cgroup_write_file(int dir, const char *name, const char *text)
{
	_cleanup_close_ int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	ssize_t len = (ssize_t)strlen(text);
	ssize_t n = fd < 0 ? -1 : write(fd, text, (size_t)len);

	/* A short write sets no errno. */
	return n < 0 ? -errno : n == len ? 0 : -EIO;
}

ssize_t
cgroup_read_file(int dir, const char *name, char *text, size_t cap)
{
	_cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, cap - 1);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	return n;
}

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

static int
open_in(int parent, const char *name)
{
	int fd = openat(
	    parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int
make_in(int parent, const char *name)
{
	if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	return open_in(parent, name);
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
