/* SPDX-License-Identifier: ISC */
/*
 * Placeholders are empty files and directories that are made on the disk for
 * names that are missing and must stay so, because a mount can cover only what
 * exists (doc/sandbox.md A10, rule 6, and C3, step 4).
 *
 * Who uses them is in a directory of their user's that no sandbox and no other
 * user reaches, PLACEHOLDERS_FD. For each directory with placeholders there is
 * one list, a file whose name is the device and inode of that directory. Every
 * user of a placeholder there holds a shared lock on the list, and the last one
 * removes what the list has. The kernel drops the lock of who is killed, and
 * the next runner of that user removes what was left.
 *
 * What is removed has the inode and the time of change that the list knows, and
 * is empty: whatever somebody changed or put there stays.
 */
#pragma once

#include "base.h"
#include "control_limits.h"
#include "resolve.h"

struct placeholder {
	const char *path;
	bool directory, made;
	bool covered;	     /* by the view, as it is now */
	struct fs_node seen; /* once taken; FS_MISSING: nobody can make it */
	struct timespec changed;
};

/* The placeholders of one directory. */
struct placeholder_place {
	struct placeholder *first;
	size_t count;
	int directory, list; /* -1: none */
	char key[40];	     /* the list's name */
};

struct placeholders {
	struct placeholder *all; /* owned, as the places */
	struct placeholder_place *places;
	size_t count, nplaces;
	bool taken;
};

/*
 * Takes over PLACEHOLDERS_FD. Who has no such descriptor, or does not call
 * this, has no lists, and then placeholders stay. in_view: in that of a
 * sandbox.
 */
void placeholders_begin(bool in_view);
/* The same for a runner that root did not start. It opens the lists below the
 * home directory of its user. */
void placeholders_begin_alone(void);

/* Starts a process that removes what killed runners left. */
void placeholders_clean(void);

/* Returns the descriptor, which stays here, or -1. */
int placeholders_lists(void);

/* Returns where it is, which the caller frees, or NULL. */
char *placeholders_path(void);

/* Those of a plan, which must outlive them. None is made yet. */
void placeholders_init(struct placeholders *p, const struct plan *plan);

/*
 * Makes the placeholders, or shares those that are there. Returns 0, or -errno
 * with the failed step in step[SANDBOX_STEP_MAX], and then none is taken. Never
 * waits for anybody longer than some milliseconds.
 */
int placeholders_take(struct placeholders *p, char *step);

/* The view covers all of them now. */
void placeholders_covered(struct placeholders *p);

/* Leaves them, and removes those that nobody else uses. */
void placeholders_leave(struct placeholders *p);
void placeholders_clear(struct placeholders *p);

/* Tells whether those that are taken are still what a newer plan saw. */
bool placeholders_match(const struct placeholders *p, const struct plan *plan);

/*
 * Tells whether the file that lstat(2) found under that path is a placeholder,
 * of this user's, or of this view's, which a mount covers. The path is seen
 * from the directory `at`.
 */
bool placeholder_is(int at, const char *path, const struct stat *st);
