/* SPDX-License-Identifier: ISC */
/*
 * The files of a control group, for the files of cgroup.h.
 */
#ifndef CGROUP_FILE_H
#define CGROUP_FILE_H

#include <sys/types.h>

/* All of text at once. 0 or -errno. */
int cgroup_write_file(int dir, const char *name, const char *text);

/* At most cap - 1 bytes, and a NUL behind them. Their number, or -errno. */
ssize_t cgroup_read_file(int dir, const char *name, char *text, size_t cap);

#endif
