/* SPDX-License-Identifier: ISC */
/*
 * An order of the broker's to start a program as a user: control_user, and a
 * list of what has no fixed length. The list is a file in memory, as buf.h
 * writes it: u32 count, as many u32 group ids, u32 count, as many strings of
 * the environment.
 */
#ifndef ORDER_H
#define ORDER_H

#include <sys/types.h>

#include "control.h"

/* Of a list; it is refused where it is read. */
#define ORDER_LIST_MAX	   (4u << 20)
#define ORDER_GROUPS_MAX   65536
#define ORDER_STRINGS_MAX  65536
#define ORDER_VARIABLE_MAX (128u << 10) /* MAX_ARG_STRLEN of execve(2) */

struct spawn_order {
	struct control_user who;
	gid_t *gids;
	size_t ngids;
	char **env; /* ends with NULL */
};

/* Reads the list, which stays the caller's. 0; or -EBADMSG, or -E2BIG over the
 * limits above, and nothing is to be cleared. */
int order_read(struct spawn_order *o, const struct control_user *who, int list);
void order_clear(struct spawn_order *o);

#endif
