/* SPDX-License-Identifier: ISC */
/*
 * The tasks of execd-child.
 */
#pragma once

#include "task.h"

/* --- disk_task.c -------------------------------------------------------- */

/* Works on a path for as long as it takes, and says what came of it. */
void disk_task(const struct task *t, const int *fds, size_t nfds);

/* --- groups.c ----------------------------------------------------------- */

/* Claims a control group for the parent process, root's execd. */
void groups_claim(void);

/* Gives it back. The descriptors are then closed. Returns 0 or -errno. */
int groups_release(struct task *t, const int *fds, size_t nfds);

/* --- user_namespace.c --------------------------------------------------- */

/* Makes a user namespace that belongs to the user, and answers with
 * spawn_opened and its descriptor. Waits for nobody. */
void user_namespace_make(uid_t uid, gid_t gid);
