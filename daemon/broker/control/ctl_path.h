/* SPDX-License-Identifier: ISC */
/*
 * Where control sockets lie by default. The broker makes its socket there, and
 * `execd ctl` looks there. Each socket is named after the process of its execd,
 * so that several never collide.
 */
#ifndef CTL_PATH_H
#define CTL_PATH_H

#include <stdbool.h>
#include <sys/types.h>

#include "control_spawn.h"

#define CTL_NAME_PREFIX	  "ctl."
#define CTL_DIRECTORY_MAX 96 /* with the NUL; a name still fits behind it */
#define CTL_PATH_MAX	  108

/* The directory of root's sockets, or of an ordinary user's: below
 * XDG_RUNTIME_DIR, or /tmp/execd-UID. Returns 0 or -ENAMETOOLONG. */
int ctl_directory(char directory[CTL_DIRECTORY_MAX], bool root);

/* Checks that the directory exists, and that only its owner, root or ourselves,
 * can put a socket there. Returns 0 or -errno. */
int ctl_directory_check(const char *directory);

/* Makes an ordinary user's directory if it is missing. Root's execd makes its
 * own. Returns 0 or -errno. */
int ctl_directory_make(const char *directory);

/* Removes sockets of an execd that is gone, as far as we may. */
void ctl_directory_tidy(const char *directory);

#endif
