/* SPDX-License-Identifier: ISC */
/*
 * A user as the broker describes him to root: control_user, and a list of
 * everything that has no fixed length. The list is a u32 count, as many u32
 * group ids, then the environment, each variable with its NUL. Root keeps it as
 * it is.
 */
#pragma once

#include "base.h"
#include "control_spawn.h"

/* Limits of the list. A list beyond them is refused where it is read. */
#define SPAWN_USER_LIST_MAX   (4u << 20)
#define SPAWN_USER_GROUPS_MAX 65536

struct spawn_user {
	struct control_user who;
	uint32_t *list;
	size_t size; /* in bytes */
};

void spawn_user_clear(struct spawn_user *o);

/* Tells whether these bytes are such a list. */
bool spawn_user_is_list(const uint32_t *list, size_t size);

/* The supplementary groups are o->list[0] in number. */
static inline const gid_t *
spawn_user_groups(const struct spawn_user *o)
{
	return o->list + 1;
}

/* Tells whether `now` is `o` with fewer groups. */
bool spawn_user_is_within(
    const struct spawn_user *now, const struct spawn_user *o);

/* Returns the name of the user's account, or NULL. The broker says it as USER,
 * before it adds what the operator says. */
const char *spawn_user_name(const struct spawn_user *o);

/* Returns the environment for execve(2), in a process that soon calls it. */
char **spawn_user_env(const struct spawn_user *o);
