/* SPDX-License-Identifier: ISC */
/*
 * Absolute paths as text.
 */
#include "path.h"

#include <string.h>

bool
path_lies_in(const char *path, const char *directory)
{
	size_t n = strcmp(directory, "/") == 0 ? 0 : strlen(directory);

	return strncmp(path, directory, n) == 0 &&
	       (path[n] == '\0' || path[n] == '/');
}
