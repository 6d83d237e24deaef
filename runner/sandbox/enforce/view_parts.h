/* SPDX-License-Identifier: ISC */
/* What the files of the view share. Nobody else includes this header. */
#ifndef VIEW_PARTS_H
#define VIEW_PARTS_H

#include <sys/types.h>

#include "view.h"

/* The empty files and directories that cover names in the finished view. */
#define VIEW_EMPTY	     "/dev/.empty"
#define VIEW_EMPTY_FILE	     VIEW_EMPTY "/file"
#define VIEW_EMPTY_DIRECTORY VIEW_EMPTY "/directory"
#define VIEW_EMPTY_BLANK     VIEW_EMPTY "/blank"

/* The devices in the view's /dev. */
#define VIEW_DEVICES 6
extern const char *const view_device_names[VIEW_DEVICES];

struct view {
	const struct plan *plan;
	uint64_t shm_bytes;
	char *step;
	int old;		   /* the root to be replaced */
	int dev;		   /* its /dev, which make_empty() covers */
	int proc;		   /* its /proc, used to name descriptors */
	int devices[VIEW_DEVICES]; /* -1 or -ENOENT: the host has none */
	int empty; /* a file system with empty files and directories */
	int closed_directory, closed_file, empty_directory;
	int root;	/* the new root */
	dev_t *own;	/* owned: the file systems made here */
	int *own_roots; /* owned, closed at the end; -1: do not seal */
	size_t nown, own_cap;
};

void view_step(struct view *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Mounts a new tmpfs on `target`. If `path`, its place in the new root, is
 * given, it is sealed at the end. Returns 0 or -errno.
 */
int view_tmpfs(struct view *v, int target, const char *path, unsigned flags,
    const char *options);

/*
 * Writes the options of a tmpfs that commands may fill to text[96]: its size
 * and the number of files.
 */
void view_memory_options(const struct view *v, char *text, size_t cap);

/*
 * Opens a mount point in the new root with O_PATH. A missing one is made if the
 * view made the file system that it is missing in; elsewhere it is -ESTALE.
 * *own: the point is in such a file system, so it is not what the resolver saw.
 * Returns a descriptor that the caller owns, or -errno.
 */
int view_point(struct view *v, const char *path, bool directory, bool *own);

/* Adds /dev and /sys. Returns 0 or -errno. */
int view_add_system(struct view *v);

#endif
