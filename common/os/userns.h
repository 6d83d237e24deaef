/* SPDX-License-Identifier: ISC */
/*
 * User namespaces that contain one user (user_namespaces(7)).
 */
#pragma once

#include "base.h"

/*
 * Moves the calling process into a new user namespace. Its effective user and
 * group keep their ids inside; all others appear as nobody. Afterwards the
 * process has every capability inside and none outside, and it cannot be
 * dumped. The kernel must permit user namespaces to ordinary users, or the
 * process needs CAP_SYS_ADMIN. Returns 0, or -errno with the failed step in
 * *step. *none becomes true if the kernel lets this user make no user
 * namespace; then nothing has changed. `none` may be NULL.
 */
int userns_enter_new(bool *none, const char **step);

/*
 * The second part of that, in a new user namespace that was made otherwise: the
 * ids that its process had outside are its ids inside. `proc` is the directory
 * of that process in /proc. Returns as above.
 */
int userns_map(int proc, uid_t uid, gid_t gid, const char **step);
