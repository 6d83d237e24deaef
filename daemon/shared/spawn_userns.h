/* SPDX-License-Identifier: ISC */
/*
 * The user namespace (doc/design.md section 2) that belongs to the user of an
 * identity. A process of that user that has the descriptor may enter it, and
 * has capabilities there and nowhere else. This also works on hosts where
 * ordinary users may not make user namespaces.
 */
#ifndef ROOT_USER_NAMESPACE_H
#define ROOT_USER_NAMESPACE_H

#include <sys/types.h>

/* Returns a descriptor, close-on-exec and the caller's, or -errno with the step
 * that failed in *step. program_fd is execd-runner. Waits for a child that
 * stays root's. Only for root. */
int userns_open(int program_fd, uid_t uid, gid_t gid, const char **step);

#endif
