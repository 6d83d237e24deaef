/* SPDX-License-Identifier: ISC */
/*
 * Lets commands set the set-group-id bit on directories. A filter of system
 * calls cannot tell a directory from a program, and on a program this bit would
 * give the user's group to whoever starts it outside of the sandbox. So the
 * kernel hands each chmod(2) with this bit to a process of the sandbox
 * (seccomp_unotify(2)). That process opens the file, checks that it is a
 * directory, and changes the mode of what it opened. The command's own call is
 * never let through.
 */
#ifndef CHMOD_PROXY_H
#define CHMOD_PROXY_H

#include <stdbool.h>

/*
 * Starts the proxy for the caller and everything that it starts afterwards. The
 * caller must have set no_new_privs. `proc` is a /proc that shows the commands.
 * Returns 0 with *there, or -errno. *there is false if the kernel or whoever
 * started execd does not permit such a filter; then nothing has changed.
 */
int chmod_proxy_start(int proc, bool *there);

#endif
