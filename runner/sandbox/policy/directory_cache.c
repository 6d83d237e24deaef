/* SPDX-License-Identifier: ISC */
#include "directory_cache.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include "base.h"
#include "siphash.h"

/*
 * The kernel's clock has steps of up to 10 ms, and the times of disk file
 * systems have steps of up to 2 s. A change within the same step leaves the
 * time as it was, so a directory that changed this recently is not remembered.
 */
#define SETTLED_SECONDS 3

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

struct directory_entry {
	struct table_node link;
	dev_t device;
	ino_t inode;
	struct timespec changed;
	size_t len, cap;
	char *names; /* owned: for each name its type, the name and a NUL */
	char path[];
};

static bool
same_path(const struct table_node *link, const void *key)
{
	return strcmp(TABLE_OBJECT(link, struct directory_entry, link)->path,
		   key) == 0;
}

static struct directory_entry *
find(const struct directory_cache *c, const char *path)
{
	struct table_node *n = table_find(
	    &c->table, siphash_bytes(path, strlen(path)), same_path, path);

	return n != NULL ? TABLE_OBJECT(n, struct directory_entry, link) : NULL;
}

static size_t
bytes_of(const struct directory_entry *e)
{
	return sizeof(*e) + strlen(e->path) + 1 + e->cap;
}

static void
drop(struct directory_cache *c, struct directory_entry *e)
{
	table_remove(&c->table, &e->link);
	c->bytes -= bytes_of(e);
	directory_entry_free(e);
}

const struct directory_entry *
directory_cache_find(
    const struct directory_cache *c, const char *path, const struct stat *st)
{
	const struct directory_entry *e = find(c, path);

	return e != NULL && e->device == st->st_dev && e->inode == st->st_ino &&
		       e->changed.tv_sec == st->st_ctim.tv_sec &&
		       e->changed.tv_nsec == st->st_ctim.tv_nsec
		   ? e
		   : NULL;
}

void
directory_entry_each(
    const struct directory_entry *e, fs_visit_fn *visit, void *arg)
{
	for (size_t at = 0; at < e->len; at += strlen(e->names + at) + 1)
		if (!visit(arg, e->names + at + 1,
			(enum fs_type)(unsigned char)e->names[at] - 1))
			break;
}

/* --- filling ------------------------------------------------------------ */

static bool
is_local(int fd)
{
	static const unsigned long types[] = { EXT4_SUPER_MAGIC,
		XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC,
		TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC };
	struct statfs st;

	if (fstatfs(fd, &st) < 0)
		return false;
	for (size_t i = 0; i < nitems(types); i++)
		if ((unsigned long)st.f_type == types[i])
			return true;
	return false;
}

static bool
is_settled(const struct stat *st)
{
	struct timespec now;

	return clock_gettime(CLOCK_REALTIME, &now) == 0 &&
	       st->st_ctim.tv_sec < now.tv_sec - SETTLED_SECONDS;
}

struct directory_entry *
directory_entry_new(const char *path, int fd)
{
	size_t n = strlen(path) + 1;
	struct directory_entry *e;
	struct stat st;

	if (fstat(fd, &st) < 0 || !is_settled(&st) || !is_local(fd))
		return NULL;
	e = xcalloc(1, sizeof(*e) + n);
	e->device = st.st_dev;
	e->inode = st.st_ino;
	e->changed = st.st_ctim;
	memcpy(e->path, path, n);
	return e;
}

void
directory_entry_add(
    struct directory_entry *e, const char *name, enum fs_type type)
{
	size_t n = strlen(name) + 2;

	while (e->cap - e->len < n) {
		e->cap = e->cap ? e->cap * 2 : 128;
		e->names = xreallocarray(e->names, e->cap, 1);
	}
	e->names[e->len] = (char)(type + 1);
	memcpy(e->names + e->len + 1, name, n - 1);
	e->len += n;
}

void
directory_entry_free(struct directory_entry *e)
{
	if (e != NULL)
		free(e->names);
	free(e);
}

void
directory_cache_put(struct directory_cache *c, struct directory_entry *e)
{
	struct directory_entry *old = find(c, e->path);

	if (old != NULL)
		drop(c, old);
	if (c->bytes + bytes_of(e) > DIRECTORY_CACHE_BYTES)
		directory_cache_clear(c);
	c->bytes += bytes_of(e);
	table_insert(
	    &c->table, &e->link, siphash_bytes(e->path, strlen(e->path)));
}

void
directory_cache_clear(struct directory_cache *c)
{
	struct table_node *n;

	while ((n = table_next(&c->table, NULL)) != NULL)
		drop(c, TABLE_OBJECT(n, struct directory_entry, link));
	table_clear(&c->table);
	*c = (struct directory_cache){ 0 };
}
