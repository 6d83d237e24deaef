/* SPDX-License-Identifier: ISC */
/*
 * Which paths may lie on a file system whose answers come from elsewhere: from
 * a file server, or from a program of the user (fuse). The kernel makes whoever
 * opens such a path wait, and the runner must not wait. The runner reads its
 * mount table, once and after each change, and looks at nothing that may wait.
 */
#pragma once

#include "base.h"

/* The mount points of such file systems. */
struct slow_mounts {
	char **points;
	size_t count;
};

/* Decodes a field of mountinfo in place: space, tab, newline and backslash are
 * octal there ("\040"). */
void slow_mounts_unescape(char *s);

/* Reads the text of /proc/self/mountinfo, which is changed. */
void slow_mounts_read(struct slow_mounts *m, char *text);
void slow_mounts_clear(struct slow_mounts *m);

/* Tells whether the absolute path leads there, itself or through a symbolic
 * link. */
bool slow_mounts_have(const struct slow_mounts *m, const char *path);

/* Finds the interpreter that the first line of a script names. Returns false if
 * the program has none. */
bool slow_paths_interpreter(const char *program, char *path, size_t size);

/* Returns the slow mount points that there are now, or NULL. */
const struct slow_mounts *slow_paths_now(void);

/* Returns how often slow_paths_now() has found a mount table that was changed.
 */
unsigned slow_paths_changes(void);

/*
 * Returns the slow paths that a start opens before its program runs: a vector
 * that slow_paths_free() frees, or NULL if there is none. cwd is absolute,
 * candidates are as in spawn.h.
 */
char **slow_paths_of_start(const struct slow_mounts *m, const char *cwd,
    const char *const *candidates);

/* Adds a path to the vector, which may be NULL, if it is slow. */
void slow_paths_add(
    char ***paths, const struct slow_mounts *m, const char *path);

void slow_paths_free(char **paths);
