/*
 * The lists of the masks (runner/sandbox/enforce/placeholder.h) that sessions make in the
 * trees of their users: one file for each user, in a directory that is
 * execd's alone. A hard stop leaves list and masks; the next start finds a list
 * that nobody locks, and a process of its user takes away what is on it.
 *
 * Root keeps them in $STATE_DIRECTORY/masks, or /var/lib/execd/masks; an
 * ordinary user in $XDG_STATE_HOME/execd/masks or ~/.local/state/execd/masks.
 * Where there is no such place a list is in memory, for as long as execd runs.
 */
#ifndef MASK_FILES_H
#define MASK_FILES_H

#include <stdbool.h>

struct identity;
struct mask_file;
struct monitor;

/* Opens the directory and has the lists of dead servers swept. */
void mask_files_begin(const struct monitor *m);

/* A runner of a broker before this one was killed: lists that nobody uses any
 * more are swept. */
void mask_files_look(const struct monitor *m);

/* The list for a session of that identity, one reference. NULL, with a line in
 * the log: there is none. */
struct mask_file *mask_file_get(const struct identity *id);
int mask_file_fd(const struct mask_file *f);

/* A session that uses it has ended; NULL is fine. swept: its runner was killed
 * and could not take away its masks itself. */
void mask_file_put(struct mask_file *f, bool swept);

/* Clean lists go; the others stay for the next start. */
void mask_files_end(void);

#endif
