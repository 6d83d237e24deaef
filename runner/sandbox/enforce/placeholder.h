/* SPDX-License-Identifier: ISC */
/*
 * Placeholders: what is made on the disk for a name that is missing and must
 * stay so, because only what is there can be covered by a mount (doc/sandbox.md
 * A10, rule 6, and C3, step 4).
 *
 * A placeholder is an empty directory of mode 0555 or an empty file of mode
 * 0600, and its time of modification is one second after the epoch. That tells
 * placeholders of other sessions from what a user made; it proves nothing, for
 * the user can forge it. So a directory counts only while it is empty, and
 * commands never see the placeholder: something empty is mounted over it. The
 * nanoseconds of that time are a mark, made with a key that users do not know
 * (placeholder_list.h): they tell a placeholder that a hard stop left behind
 * from everything else. Whoever uses one holds a shared lock on it; the last
 * one takes it away.
 */
#ifndef PLACEHOLDER_H
#define PLACEHOLDER_H

#include <stdbool.h>
#include <sys/stat.h>

#include "resolve.h"
#include "siphash.h"

struct placeholder {
	const char *path;
	bool directory;
	int fd; /* locked; -1: not taken, or nothing to placeholder */
	struct fs_node seen; /* once taken */
};

/* Whether it looks like a placeholder, a file only of this user's. */
bool placeholder_is(const struct stat *st);

/* Makes it, with a mark of that key unless it is NULL, or shares it with who
 * made it. 0; m->fd stays -1 where this user
 * can make nothing and never could. -errno: -EBUSY when somebody holds it for
 * himself. */
int placeholder_take(struct placeholder *m, const struct siphash_key *key);

/* Takes it away if nobody else uses it. */
void placeholder_leave(struct placeholder *m);

/* The same for one with a mark of that key, which its user left behind. orphan:
 * nobody makes placeholders with that key any more, so that what was about to
 * become one goes, too, and what stays is worth a line in the log. */
void placeholder_sweep(
    const char *path, const struct siphash_key *key, bool orphan);

#endif
