/* SPDX-License-Identifier: ISC */
/*
 * The list that a fresh broker makes, and whose numbers a serving broker names:
 * which users runners may become, where to listen and to write, and copies of
 * the files from which the configuration was read. Root reads none of these
 * files.
 */
#pragma once

#include "spawn_user.h"

/* The most of each. */
#define LIST_USERS_MAX	65536
#define LIST_PLACES_MAX 4096
#define LIST_FILES_MAX	1024

struct listed_place {
	int fd; /* of a listener, or -1 */
	struct control_place what;
};

struct listed_file {
	int fd; /* the copy, sealed when it is whole */
	char path[CONTROL_PATH_MAX];
};

struct list {
	struct spawn_user *users;    /* by their numbers */
	struct listed_place *places; /* likewise */
	struct listed_file *files;
	size_t nusers, nplaces, nfiles;
	struct control_seal seal;
};

/* Nobody listens any more, until a later list says so. */
void list_hang_up(struct list *l);

/* Closes everything. Removes sockets from the file system on which the list
 * listens and `next` does not. l and next may be NULL. */
void list_free(struct list *l, const struct list *next);

/* Adds a user, whose memory is then the list's. Returns 0, or -errno if the
 * list is impossible. */
int list_add_user(struct list *l, const struct spawn_user *u);

/* The user has fewer groups. Returns 0 as above, or -errno if anything else
 * would change. */
int list_narrow_user(struct list *l, const struct spawn_user *u);

/*
 * The functions below return a descriptor that stays the list's; or with
 * found->later the channel of a child (disk.h), which is the caller's; or -1,
 * with found->error if something failed; or -EBADMSG if what is asked is
 * impossible.
 */

/* Adds a place. A listener is bound, or gets the socket that `old` has
 * (NULL: none). For other places it is checked whether they can be
 * written to. With `check`, nothing is made. */
int list_add_place(struct list *l, const struct control_place *p,
    const struct list *old, bool check, struct control_found *found);

/* Adds a copy of the file. The copy is that of `old`, if `old` has one, or made
 * from the disk. */
int list_add_file(struct list *l, const char *path, const struct list *old,
    struct control_found *found);

/* Returns the copy in the list, or NULL. */
const struct listed_file *list_find_file(
    const struct list *l, const char *path);

/* Returns the user of that number, or NULL. */
const struct spawn_user *list_user(const struct list *l, uint32_t number);

/* list_open() opens the file or socket of records again. list_record() makes a
 * new file in a directory. */
int list_open(
    const struct list *l, uint32_t number, struct control_found *found);
int list_record(const struct list *l, uint32_t number, const char *name,
    struct control_found *found);

struct saved; /* saved.h */
void list_save(struct saved *s, struct list **l);

/* Nobody listens at that place any more. Returns 0 or -EBADMSG. */
int list_close(struct list *l, uint32_t number);
