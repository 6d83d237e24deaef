/* SPDX-License-Identifier: ISC */
/*
 * The user namespace (doc/design.md section 2): a user namespace that belongs
 * to the user of an identity. Whoever has the descriptor and is that user may
 * enter it and has capabilities there, and nowhere else, on hosts too where
 * ordinary users may not make such a thing.
 */
#ifndef ROOT_USER_NAMESPACE_H
#define ROOT_USER_NAMESPACE_H

#include <sys/types.h>

/* A descriptor, close-on-exec, the caller's to close; or -errno with what
 * failed in *step. program_fd: execd-runner. Waits for a child that stays
 * root's. Root only. */
int userns_open(int program_fd, uid_t uid, gid_t gid, const char **step);

#endif
