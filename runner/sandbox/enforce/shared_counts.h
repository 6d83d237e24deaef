/* SPDX-License-Identifier: ISC */
/* Limits what the kernel counts per user, also inside a sandbox. */
#ifndef SHARED_COUNTS_H
#define SHARED_COUNTS_H

/*
 * Limits the inotify instances and watches in the caller's user namespace to a
 * part of what its user may have. The rest stays for the session's own fs/watch
 * and for the user's other programs. The caller needs capabilities in its user
 * namespace. If the kernel or the host's /proc does not permit it, a warning is
 * logged and nothing is limited.
 */
void shared_counts_limit(void);

#endif
