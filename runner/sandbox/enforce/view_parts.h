/* SPDX-License-Identifier: ISC */
/*
 * What the files of the view share, and nobody else includes.
 */
#ifndef VIEW_PARTS_H
#define VIEW_PARTS_H

#include <sys/types.h>

#include "view.h"

/* Where a command finds empty things to cover names with. */
#define VIEW_EMPTY	     "/dev/.empty"
#define VIEW_EMPTY_FILE	     VIEW_EMPTY "/file"
#define VIEW_EMPTY_DIRECTORY VIEW_EMPTY "/directory"
#define VIEW_EMPTY_BLANK     VIEW_EMPTY "/blank"

/* /dev of the view. */
#define VIEW_DEVICES 6
extern const char *const view_device_names[VIEW_DEVICES];

struct view {
	const struct plan *plan;
	uint64_t shm_bytes;
	char *step;
	int old;		   /* the root that is replaced */
	int dev;		   /* its /dev, which is covered */
	int proc;		   /* its /proc: the way to name descriptors */
	int devices[VIEW_DEVICES]; /* -1: the host has none */
	int empty;		   /* a file system of empty things */
	int closed_directory, closed_file, empty_directory;
	int root;	/* the new one */
	dev_t *own;	/* file systems made here; owned */
	int *own_roots; /* owned, and closed at the end; -1: not to be sealed */
	size_t nown, own_cap;
};

void view_step(struct view *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A new tmpfs on `target`, sealed at the end if `path` (where to find its root
 * in the new root) is given. 0 or -errno. */
int view_tmpfs(struct view *v, int target, const char *path, unsigned flags,
    const char *options);

/* Options of a file system in memory that commands may fill, in text[96]: its
 * size, and how many files fit. */
void view_memory_options(const struct view *v, char *text, size_t cap);

/* The file system at fd was made here: missing places may be made in it, and
 * with `seal` it is sealed at the end. 0 or -errno. */
int view_own(struct view *v, int fd, bool seal);

/* A place in the new root to mount on, made when the view made the file system
 * it is missing in. *own: it lies in such a file system, so that it is not
 * what the resolver saw. O_PATH descriptor or -errno. */
int view_point(struct view *v, const char *path, bool directory, bool *own);

/* The directory a link is to be made in; *name points into path. */
int view_parent(struct view *v, const char *path, const char **name);

/* Is it what the resolver saw? */
bool view_is_same(int fd, const struct fs_node *seen);

/* A grant in /dev, where every view has something of its own. */
bool view_is_dev_grant(const struct plan_mount *m);

/* /dev and /sys. */
int view_add_system(struct view *v);

#endif
