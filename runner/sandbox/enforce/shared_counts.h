/* SPDX-License-Identifier: ISC */
/*
 * What the kernel counts per user, in a sandbox as well.
 */
#ifndef SHARED_COUNTS_H
#define SHARED_COUNTS_H

/*
 * Gives the user namespace of the caller, who has capabilities in it, a part of
 * the inotify instances and watches that its user may have, so that the rest
 * stays for the session's own fs/watch and for the user's other programs. Where
 * the kernel or the host's /proc does not let it, it is logged and nothing is
 * limited.
 */
void shared_counts_limit(void);

#endif
