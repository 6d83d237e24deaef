/* SPDX-License-Identifier: ISC */
/*
 * A user as the broker describes him to root: control_user, and a list of
 * everything that has no fixed length. The list is a file in memory, as buf.h
 * writes it: u32 count, as many u32 group ids, u32 count, as many strings of
 * the environment.
 */
#ifndef SPAWN_USER_H
#define SPAWN_USER_H

#include <sys/types.h>

#include "control.h"

/* Limits of the list. A list beyond them is refused where it is read. */
#define SPAWN_USER_LIST_MAX	(4u << 20)
#define SPAWN_USER_GROUPS_MAX	65536
#define SPAWN_USER_STRINGS_MAX	65536
#define SPAWN_USER_VARIABLE_MAX (128u << 10) /* MAX_ARG_STRLEN of execve(2) */

struct spawn_user {
	struct control_user who;
	gid_t *gids;
	size_t ngids;
	char **env; /* ends with NULL */
};

/* Reads the list, which stays the caller's. Returns 0. Returns -EBADMSG, or
 * -E2BIG beyond the limits above, and then there is nothing to clear. */
int spawn_user_read(
    struct spawn_user *o, const struct control_user *who, int list);
void spawn_user_clear(struct spawn_user *o);

#endif
