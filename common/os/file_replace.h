/* SPDX-License-Identifier: ISC */
/*
 * Gives a complete file the name of another one, and keeps what that one was
 * besides its content: mode, owner, group, hard links, access control list and
 * extended attributes (rename(2), acl(5), xattr(7)).
 */
#pragma once

#include "base.h"

#define FILE_NO_MODE (-1)

/*
 * Renames the file `temporary`, which is open for reading as `in`, to `path`,
 * in the same file system. If there is a file of that name, its owner and group
 * are given to the new one. If they cannot be, or if the old file has other
 * names, an access control list or extended attributes, the content is copied
 * into it instead, and `temporary` is removed. A link is replaced.
 *
 * mode: the permission bits that a new file gets; FILE_NO_MODE: it has them
 * already. `sets` gives them to a file that is replaced, too.
 * *unkept is a constant text that says what could not be kept; NULL: nothing.
 * Returns 0, -ENOTSUP if there is neither a file nor a link nor a directory, or
 * -errno of fchmod(2) or rename(2); then the old file is what it was.
 */
int file_replace(int in, const char *temporary, const char *path, int mode,
    bool sets, const char **unkept);

/* Tells whether the file has an access control list or extended attributes
 * besides those of the system. fd may be -1: then `path` is followed. */
bool file_has_attributes(int fd, const char *path);

/*
 * Copies at most `size` bytes of the file `in` to the empty file `out`. The
 * limit is needed, because `in` may grow as fast as it is copied. Holes stay
 * holes. If `in` becomes shorter meanwhile, so does `out`. Returns 0 or -errno.
 */
int file_copy_content(int in, int out, off_t size);
