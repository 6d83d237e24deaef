/* SPDX-License-Identifier: ISC */
/*
 * Files that decide who may do what. When they are opened, it is checked who
 * could have written them. They are used as they are at that moment.
 */
#pragma once

#include "base.h"

/* Opens a plain file of root's or our own that not everybody can write. Returns
 * a descriptor, the caller's, -EINVAL if it must not be used, or another
 * -errno, with the reason in why. */
int trusted_open(const char *path, struct stat *st, char *why, size_t len);

/* Opens a directory likewise. Nobody else may be able to write to it
 * (O_PATH). */
int trusted_directory(const char *path, char *why, size_t len);

/* Checks a file that records are appended to: a plain file of our own with one
 * name, which nobody else can write, or a character device. Returns 0, or
 * -errno as trusted_open() does. */
int trusted_record(int fd, char *why, size_t len);

/* Copies at most so many bytes of the file to `copy`, a file in memory that
 * nobody can change afterwards. Does not look at the bytes. Returns 0 or
 * -errno. */
int trusted_copy(int fd, int copy, size_t limit);
