/* SPDX-License-Identifier: ISC */
/*
 * The lists of the placeholders (runner/sandbox/enforce/placeholder.h) that
 * sessions make in the trees of their users: one file for each user, in a
 * directory that is execd's alone. A hard stop leaves list and placeholders;
 * the next start finds a list that nobody locks, and a process of its user
 * takes away what is on it.
 *
 * Root keeps them in $STATE_DIRECTORY/masks, or /var/lib/execd/masks; an
 * ordinary user in $XDG_STATE_HOME/execd/masks or ~/.local/state/execd/masks.
 * Where there is no such place a list is in memory, for as long as execd runs.
 */
#ifndef PLACEHOLDER_FILES_H
#define PLACEHOLDER_FILES_H

#include <stdbool.h>

struct identity;
struct placeholder_file;
struct broker;

/* Opens the directory and has the lists of dead servers swept. */
void placeholder_files_begin(const struct broker *m);

/* A runner of a broker before this one was killed: lists that nobody uses any
 * more are swept. */
void placeholder_files_look(const struct broker *m);

/* The list for a session of that identity, one reference. NULL, with a line in
 * the log: there is none. */
struct placeholder_file *placeholder_file_get(const struct identity *id);
int placeholder_file_fd(const struct placeholder_file *f);

/* A session that uses it has ended; NULL is fine. swept: its runner was killed
 * and could not take away its placeholders itself. */
void placeholder_file_put(struct placeholder_file *f, bool swept);

/* Clean lists go; the others stay for the next start. */
void placeholder_files_end(void);

#endif
