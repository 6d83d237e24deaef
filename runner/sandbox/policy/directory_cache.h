/* SPDX-License-Identifier: ISC */
/*
 * Remembers the names in directories from one resolution of patterns to the
 * next. An entry is valid while its directory has the same device, inode number
 * and time of change (ctime) as when it was read. The kernel sets the ctime to
 * the current time whenever a name is added, removed or replaced. Only root can
 * set another value.
 *
 * The code is plain C except for two questions to the kernel. Only directories
 * on local file systems are remembered, because other file systems may keep
 * times in their own way.
 */
#pragma once

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

/*
 * Returns the entry of a directory if it is still valid. NULL: the caller must
 * read the directory. *st is a fresh lstat(2) of it.
 */
const struct directory_entry *directory_cache_find(
    const struct directory_cache *c, const char *path, const struct stat *st);

/* Calls visit for each name, as fs_view.list does. */
void directory_entry_each(
    const struct directory_entry *e, fs_visit_fn *visit, void *arg);

/*
 * Makes an empty entry, to be filled while the directory open as fd is read.
 * NULL: the directory changed a moment ago or is not on a local file system.
 * The caller owns the entry.
 */
struct directory_entry *directory_entry_new(const char *path, int fd);
void directory_entry_add(
    struct directory_entry *e, const char *name, enum fs_type type);
void directory_entry_free(struct directory_entry *e);

/*
 * Takes ownership of the entry, which replaces an older one of the same path.
 * When the cache is full, it is emptied first.
 */
void directory_cache_put(struct directory_cache *c, struct directory_entry *e);
void directory_cache_clear(struct directory_cache *c);
