/* SPDX-License-Identifier: ISC */
/*
 * Absolute paths, as text: nothing in them is looked up.
 */
#ifndef PATH_H
#define PATH_H

#include <stdbool.h>

/* Is it the directory itself, or below it? Neither has ".." or "//" in it, nor
 * ends in a slash, but "/". */
bool path_lies_in(const char *path, const char *directory);

#endif
