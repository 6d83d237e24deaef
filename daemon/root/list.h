/* SPDX-License-Identifier: ISC */
/*
 * The list that a fresh broker makes, and that a serving one names numbers of:
 * whom runners may become, where to listen and to write, and copies of the
 * files that the configuration was read from. Root reads none of these files.
 */
#ifndef LIST_H
#define LIST_H

#include "control.h"
#include "order.h"
#include "queue.h"

/* More are refused. */
#define LIST_USERS_MAX	65536
#define LIST_PLACES_MAX 4096
#define LIST_FILES_MAX	1024
#define LIST_FILE_BYTES ((8u << 20) + 1) /* the broker refuses the last one */

struct listed_place {
	TAILQ_ENTRY(listed_place) link; /* list.paths */
	int fd;				/* a listener's, or -1 */
	struct control_place what;
};

struct listed_file {
	TAILQ_ENTRY(listed_file) link; /* list.files */
	int fd;			       /* sealed copy */
	struct control_found found;
	char path[CONTROL_PATH_MAX];
};

struct list {
	struct spawn_order *users;
	size_t nusers;
	TAILQ_HEAD(, listed_place) paths;
	size_t nplaces;
	TAILQ_HEAD(, listed_file) files;
	size_t nfiles;
	struct control_seal seal;
};

struct list *list_new(void);

/* Closes everything. What it listens at and `next`, which may be NULL, does
 * not, is removed from the file system. NULL is fine. */
void list_free(struct list *l, const struct list *next);

/* Another user. 0, or -errno: the list is impossible. */
int list_add_user(struct list *l, const struct control_user *u, int fd);

/* Another place: a listener is bound, or goes on with the socket that `old` has
 * (NULL: none); of the others it is found out whether they can be written to.
 * `check`: nothing is made. Its descriptor, which stays the list's for a
 * listener and is the caller's otherwise (list_is_kept()), -1: none; or
 * found->error. -EBADMSG: the list is impossible. */
int list_add_place(struct list *l, const struct control_place *p,
    const struct list *old, bool check, struct control_found *found);

/* Is a descriptor of list_add_place() the list's? */
bool list_is_kept(const struct control_place *p);

/* A copy of the file: the one of `old`, if not NULL and there, or of the disk.
 * Its descriptor stays the list's; or -1 with found->error. -EBADMSG as above.
 */
int list_add_file(struct list *l, const char *path, const struct list *old,
    struct control_found *found);

/* The copy there is, or NULL. */
const struct listed_file *list_find_file(
    const struct list *l, const char *path);

/* Who is at that number, or NULL. */
const struct spawn_order *list_user(const struct list *l, uint32_t number);

/* What is written to anew, the caller's, or -errno; -EBADMSG: nothing of the
 * list. Then a new file in a directory. */
int list_open(const struct list *l, uint32_t number);
int list_record(const struct list *l, uint32_t number, const char *name);

struct saved; /* saved.h */
void list_save(struct saved *s, struct list **l);

/* Nobody listens there any more. 0 or -EBADMSG. */
int list_close(struct list *l, uint32_t number);

#endif
