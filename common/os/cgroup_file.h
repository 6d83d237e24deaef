/* SPDX-License-Identifier: ISC */
/*
 * Reads and writes files of a control group. For the files that implement
 * cgroup.h.
 */
#ifndef CGROUP_FILE_H
#define CGROUP_FILE_H

#include <sys/types.h>

/* Writes the whole text at once. Returns 0 or -errno. */
int cgroup_write_file(int dir, const char *name, const char *text);

/* Reads at most cap - 1 bytes and adds a NUL. Returns the number of bytes or
 * -errno. */
ssize_t cgroup_read_file(int dir, const char *name, char *text, size_t cap);

#endif
