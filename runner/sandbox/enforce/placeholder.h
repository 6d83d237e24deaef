/* SPDX-License-Identifier: ISC */
/*
 * Placeholders are files and directories that are made on the disk for names
 * that are missing and must stay so, because a mount can cover only what exists
 * (doc/sandbox.md A10, rule 6, and C3, step 4).
 *
 * A placeholder is an empty directory of mode 0555 or an empty file of mode
 * 0600, and its time of modification is one second after the epoch. This
 * distinguishes placeholders of other sessions from what a user made. It proves
 * nothing, because the user can forge it. So a directory counts only while it
 * is empty, and commands never see the placeholder: something empty is mounted
 * over it.
 *
 * The nanoseconds of that time are a mark, made with a key that users do not
 * know (struct placeholder_list). The mark identifies a placeholder that a hard
 * stop left behind. Every user of a placeholder holds a shared lock on it, and
 * the last one removes it.
 */
#ifndef PLACEHOLDER_H
#define PLACEHOLDER_H

#include <sys/stat.h>

#include "base.h"
#include "placeholder_format.h"
#include "resolve.h"
#include "siphash.h"

struct placeholder {
	const char *path;
	bool directory;
	int fd; /* locked; -1: not taken, or nothing can be created here */
	struct fs_node seen; /* valid once taken */
};

/*
 * Tells whether it looks like a placeholder. A file must belong to this user.
 */
bool placeholder_is(const struct stat *st);

/*
 * Makes the placeholder, or shares one that exists. A new one gets a mark of
 * the key, unless it is NULL. Returns 0, or -errno; -EBUSY if somebody else
 * holds an exclusive lock. With 0, m->fd stays -1 where this user can never
 * create anything.
 */
int placeholder_take(struct placeholder *m, const struct siphash_key *key);

/* Releases the placeholder, and removes it if nobody else uses it. */
void placeholder_leave(struct placeholder *m);

/*
 * Removes a placeholder with a mark of that key that its user left behind.
 * orphan: nobody makes placeholders with this key any more. Then an unfinished
 * one is removed, too, and one that stays is logged.
 */
void placeholder_cleanup(
    const char *path, const struct siphash_key *key, bool orphan);

/*
 * The list of placeholders that sessions of one user made. It is kept outside
 * of the sessions, because a runner or machine that is killed cannot remove its
 * placeholders. The broker keeps the file (placeholder_files.h of the broker)
 * and starts the cleanup. A path is written to the disk before its placeholder
 * is made.
 *
 * The list has a key that only execd knows. A placeholder carries a mark made
 * of the key, its path, its device and its inode. So a placeholder that is made
 * again for each command needs no new line, and a file that only looks like a
 * placeholder is not removed.
 */
struct placeholder_list {
	int fd; /* the session's, not owned; -1: there is no list */
	struct siphash_key key;
};

void placeholder_list_init(struct placeholder_list *l, int fd);

/*
 * Adds the paths that are not on the list. Returns 0 and sets l->key, or
 * -errno: -ENOSPC if the list is full, -EBADMSG if it is not a list.
 */
int placeholder_list_add(struct placeholder_list *l,
    const struct placeholder *placeholders, size_t n);

/*
 * For execd-runner --cleanup: removes the placeholders on the list that nobody
 * uses. Returns 0 or -errno.
 */
int placeholder_list_cleanup(int fd);

#endif
