/* SPDX-License-Identifier: ISC */
/*
 * Where control sockets lie if nobody says where: the broker makes one there,
 * and `execd ctl` looks for them there. Each is named after the process of the
 * execd it belongs to, so that several never collide.
 */
#ifndef CTL_PATH_H
#define CTL_PATH_H

#include <stdbool.h>
#include <sys/types.h>

#define CTL_ROOT_DIRECTORY "/run/execd"
#define CTL_NAME_PREFIX	   "ctl."
#define CTL_DIRECTORY_MAX  96 /* with NUL: a name fits behind it */
#define CTL_PATH_MAX	   108

/* The directory of root's sockets; or of an ordinary user's: below
 * XDG_RUNTIME_DIR, or /tmp/execd-UID. 0, or -ENAMETOOLONG. */
int ctl_directory(char directory[CTL_DIRECTORY_MAX], bool root);

/* Is it there, and can nobody but its owner, root or ourselves, put a socket
 * there? 0 or -errno. */
int ctl_directory_check(const char *directory);

/* Makes it where it is missing, and removes sockets that an execd left behind
 * which is gone. 0 or -errno. */
int ctl_directory_prepare(const char *directory, bool root);

#endif
