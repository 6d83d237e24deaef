/* SPDX-License-Identifier: ISC */
/*
 * User namespaces with one user in them (user_namespaces(7)).
 */
#ifndef USERNS_H
#define USERNS_H

#include <stdbool.h>

/*
 * The calling process goes into a new one, where its effective user and group
 * are themselves and everybody else is nobody. It has every capability in
 * there afterwards and none outside, and may not be dumped. Needs user
 * namespaces for ordinary users, or CAP_SYS_ADMIN. 0, or -errno with *step;
 * *none (NULL: nobody asks): the kernel lets this user make none at all, and
 * nothing has changed.
 */
int userns_enter_new(bool *none, const char **step);

#endif
