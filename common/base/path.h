/* SPDX-License-Identifier: ISC */
/*
 * Absolute paths as text. Nothing is looked up in the file system.
 */
#ifndef PATH_H
#define PATH_H

#include <stdbool.h>

/* Returns true if path is the directory itself or lies below it. Neither
 * argument may contain ".." or "//". Neither may end in a slash, except "/"
 * itself. */
bool path_lies_in(const char *path, const char *directory);

#endif
