/* SPDX-License-Identifier: ISC */
/*
 * Walks a tree breadth first, the entries of each directory by name, and enters
 * no directory twice.
 */
#ifndef DIRECTORY_WALK_H
#define DIRECTORY_WALK_H

#include "params.h"

/* What is told of a tree; either returns false to end the walk. */
struct directory_visitor {
	/* A regular file or a directory. Other entries are left out. */
	bool (*entry)(void *ctx, const char *path, bool directory);
	bool (*error)(void *ctx, const char *path, int err); /* err: -errno */
	void *ctx;
};

/* Returns true if the tree has more than the limits permit to tell. */
bool directory_walk(const char *top, const struct fs_walk_options *options,
    const struct directory_visitor *visitor);

#endif
