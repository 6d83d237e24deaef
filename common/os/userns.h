/* SPDX-License-Identifier: ISC */
/*
 * User namespaces that contain one user (user_namespaces(7)).
 */
#ifndef USERNS_H
#define USERNS_H

#include <stdbool.h>

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

#endif
