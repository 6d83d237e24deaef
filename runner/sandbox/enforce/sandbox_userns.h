/* SPDX-License-Identifier: ISC */
/*
 * Through the user namespace: into the user namespace of the session, and from
 * there into namespaces of the sandbox's own (doc/design.md section 2).
 */
#ifndef SANDBOX_USERNS_H
#define SANDBOX_USERNS_H

#include <stdbool.h>

/*
 * user namespace: a user namespace that the caller's user owns, or -1 to make
 * one here. Then an own mount, ipc, uts and cgroup namespace, and without
 * `network` one of the network, where nothing is up. Afterwards the caller has
 * capabilities in there, and nowhere else. 0, or -errno with *step; *none: no
 * user namespace can be made here at all, and nothing has changed.
 */
int userns_enter(int userns, bool network, bool *none, const char **step);

#endif
