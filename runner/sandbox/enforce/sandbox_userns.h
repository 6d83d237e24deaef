/* SPDX-License-Identifier: ISC */
/*
 * Enters the user namespace of the session, and from there namespaces of the
 * sandbox's own (doc/design.md section 2), and limits what may be used up
 * there.
 */
#ifndef SANDBOX_USERNS_H
#define SANDBOX_USERNS_H

#include <stdbool.h>

/*
 * userns is a user namespace that the caller's user owns, or -1 to make a new
 * one. Then the caller enters its own mount, ipc and uts namespaces and,
 * without `network`, a network namespace that has a loopback interface and
 * nothing else (loopback.h). Afterwards the caller has capabilities in these
 * namespaces only. Returns 0, or -errno with *step. *none: no user namespace
 * can be made here, and nothing has changed.
 */
int userns_enter(int userns, bool network, bool *none, const char **step);

/*
 * Tries in a child whether a command in a new user namespace could mount a
 * /proc of its own. The kernel refuses it with EPERM where something is mounted
 * over parts of /proc, as container engines do. Returns 0 or -errno; 0 also if
 * there can be no user namespace, because userns_enter() says that. Changes
 * nothing.
 */
int userns_try_proc(void);

/*
 * Limits the inotify instances and watches in the caller's user namespace to a
 * part of what its user may have. The rest stays for the session's own fs/watch
 * and for the user's other programs. The caller needs capabilities in its user
 * namespace. If the kernel or the host's /proc does not permit it, a warning is
 * logged and nothing is limited.
 */
void shared_counts_limit(void);

#endif
