/* SPDX-License-Identifier: ISC */
/*
 * Set-group-id bits on directories. A filter of system calls cannot tell a
 * directory from a program, and on a program that bit would give the user's
 * group to whoever starts it outside of the sandbox. So the kernel hands each
 * chmod(2) with that bit to a process of the sandbox (seccomp_unotify(2)),
 * which opens what is meant, looks whether it is a directory, and changes the
 * mode of what it has opened. The command's own call is never let through.
 */
#ifndef CHMOD_PROXY_H
#define CHMOD_PROXY_H

#include <stdbool.h>

/*
 * For the caller and all that it will start, which must call this without
 * privileges left to gain (no_new_privs). `proc` is a /proc that shows the
 * commands. 0 and *there, or -errno. Without *there this kernel, or whoever
 * started execd, permits no such filter, and nothing has changed.
 */
int chmod_proxy_start(int proc, bool *there);

#endif
