/* SPDX-License-Identifier: ISC */
/*
 * What every child of the broker is given, and nothing else: 0 and 1
 * /dev/null, 2 a log, 3 the control channel (doc/design.md section 3).
 */
#pragma once

#include "base.h"

/* Puts control_fd on CONTROL_FD and the program on the next number. Closes
 * everything above, however many there are. Limits of open files are set after
 * this. Fatal on failure. */
void child_place(int program_fd, int control_fd);

/* Executes the placed program. Fatal on failure. */
void child_run(char *const argv[], char *const env[]) __attribute__((noreturn));

/*
 * A child of root's executes its program as root, and the program becomes the
 * user (drop_to_given()). Until it executes, it is a copy of its parent with
 * everything that this knows, and must not be a process of that user. Such a
 * program is told its user in two ways: its supplementary groups are set, and
 * its arguments have "UID:GID".
 */
#define CHILD_USER_MAX 24
void child_set_groups(const gid_t *groups, size_t ngroups);
char *child_user(char text[CHILD_USER_MAX], uid_t uid, gid_t gid);

/* child_place() and then child_run(). */
void child_exec(int program_fd, int control_fd, char *const argv[],
    char *const env[]) __attribute__((noreturn));
