/* SPDX-License-Identifier: ISC */
/*
 * Files that decide who may do what: opened with a look at who could have
 * written them, and taken as they are at that moment.
 */
#ifndef TRUSTED_H
#define TRUSTED_H

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* A plain file of root's or our own that not everybody can write. A descriptor,
 * the caller's; -EINVAL if it must not be used or another -errno, with the
 * reason in why. */
int trusted_open(const char *path, struct stat *st, char *why, size_t len);

/* A directory likewise, which nobody else can write (O_PATH). */
int trusted_directory(const char *path, char *why, size_t len);

/* A copy in memory that nobody can change any more, of at most so many bytes
 * of the file, which are not looked at. The caller's, or -errno. */
int trusted_copy(int fd, size_t limit);

#endif
