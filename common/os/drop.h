/* SPDX-License-Identifier: ISC */
/*
 * Become a user for good, then prove it.
 */
#ifndef DROP_H
#define DROP_H

#include <stddef.h>
#include <sys/types.h>

/*
 * From root: supplementary groups, gid, uid, and every capability set but the
 * bounding one (set-id programs of the user keep working) are given up.
 * Afterwards root must be out of reach and no capability left. Any failure
 * is fatal: half a drop cannot be recovered from.
 */
void drop_to_user(uid_t uid, gid_t gid, const gid_t *groups, size_t ngroups);

/* The same for a program that root executed first, so that no copy of the
 * parent ever belongs to the user: text is "UID:GID", and the supplementary
 * groups are those that the parent has set. Fatal on failure. */
void drop_to_given(const char *text);
void drop_parse(const char *text, uid_t *uid, gid_t *gid);

/* Processes of the same user may neither read this process nor drive it, and
 * it leaves no core file. The hard limit stays, because commands inherit it.
 * Fatal on failure. */
void drop_visibility(void);

/* Gives up every capability but keeps the user, and proves it. Fatal. */
void drop_capabilities(void);

/* Also empties the bounding set; before drop_to_user(). For programs that
 * never run anything. Fatal on failure. */
void drop_bounding_set(void);

#endif
