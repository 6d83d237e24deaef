/* SPDX-License-Identifier: ISC */
/*
 * What directories hold, remembered from one resolution of patterns to the
 * next. An entry counts while its directory has the device, the inode number
 * and the time of change that it was read with: the kernel sets that time, to
 * now, whenever a name comes, goes or becomes something else, and nobody but
 * root can set another.
 *
 * Plain C but for two questions to the kernel. Only what a file system of this
 * machine holds is remembered, as others may keep times of their own.
 */
#ifndef DIRECTORY_CACHE_H
#define DIRECTORY_CACHE_H

#include <stddef.h>
#include <sys/stat.h>

#include "resolve.h"
#include "table.h"

#define DIRECTORY_CACHE_BYTES (16u << 20)

struct directory_cache {
	struct table table;
	size_t bytes;
};

struct directory_entry;

/* What the directory held, if that still holds; NULL: it must be read. *st is
 * lstat(2) of it, taken before. */
const struct directory_entry *directory_cache_find(
    const struct directory_cache *c, const char *path, const struct stat *st);

/* Calls visit as fs_view.list does. */
void directory_entry_each(
    const struct directory_entry *e, fs_visit_fn *visit, void *arg);

/* A new entry, to be filled while the directory open as fd is read. NULL: it
 * changed a moment ago, or is of a foreign file system. */
struct directory_entry *directory_entry_new(const char *path, int fd);
void directory_entry_add(
    struct directory_entry *e, const char *name, enum fs_type type);
void directory_entry_free(struct directory_entry *e);

/* Takes the entry over, in place of an older one of that path. */
void directory_cache_put(struct directory_cache *c, struct directory_entry *e);
void directory_cache_clear(struct directory_cache *c);

#endif
