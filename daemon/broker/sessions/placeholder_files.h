/* SPDX-License-Identifier: ISC */
/*
 * The lists of the placeholders (runner/sandbox/enforce/placeholder.h) that
 * sessions make in the trees of their users. There is one file for each user,
 * in a directory that only execd can write to. A hard stop leaves the list and
 * the placeholders. The next start finds a list that nobody locks, and a
 * process of its user removes the placeholders on it.
 *
 * Root keeps them in $STATE_DIRECTORY/masks or /var/lib/execd/masks, an
 * ordinary user in $XDG_STATE_HOME/execd/masks or ~/.local/state/execd/masks.
 * Without such a directory a list is in memory as long as execd runs.
 */
#ifndef PLACEHOLDER_FILES_H
#define PLACEHOLDER_FILES_H

#include <stdbool.h>
#include <sys/types.h>

struct identity;
struct placeholder_file;
struct broker;

/* Opens the directory, and starts the cleanup of the lists of dead servers. */
void placeholder_files_begin(const struct broker *m);

/* A runner of an earlier broker was killed: starts the cleanup of lists that
 * nobody uses any more. */
void placeholder_files_look(const struct broker *m);

/* Returns the list for a session of that identity, with a reference. Returns
 * NULL after logging if there is none. */
struct placeholder_file *placeholder_file_get(const struct identity *id);
int placeholder_file_fd(const struct placeholder_file *f);

/* A session that uses the list has ended; f may be NULL. left_behind: its
 * runner was killed and could not remove its placeholders itself. */
void placeholder_file_put(struct placeholder_file *f, bool left_behind);

/* Removes clean lists. The others stay for the next start. */
void placeholder_files_end(void);

/*
 * The cleanup after a killed runner. A process of the session's user removes
 * the placeholders that the session left on the disk.
 */

struct identity;

/* Starts a process and does not wait for it. `list` is the runner's list of
 * placeholders, which stays the caller's. A failure is logged. */
void placeholder_cleanup(const struct identity *id, int list);

/* A program has ended. Returns false if it is no such process. */
bool placeholder_cleanup_reap(pid_t pid);

#endif
