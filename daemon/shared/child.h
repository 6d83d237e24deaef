/* SPDX-License-Identifier: ISC */
/*
 * What every child of the broker is given, and nothing else: 0 and 1
 * /dev/null, 2 the log, 3 the control channel (doc/design.md section 3).
 */
#ifndef CHILD_H
#define CHILD_H

#include <stddef.h>
#include <sys/types.h>

/* Default dispositions, nothing blocked. Programs whose children these are
 * ignore SIGPIPE and no other signal. */
void child_reset_signals(void);

/* Puts control_fd on CONTROL_FD and the program beside it; nothing is open
 * above, however much was. Limits of open files come after this. Fatal on
 * failure. */
void child_place(int program_fd, int control_fd);

/* Executes what was placed. Fatal on failure. */
void child_run(char *const argv[], char *const env[]) __attribute__((noreturn));

/*
 * A child of root's executes its program as root, and the program becomes the
 * user (drop_to_given()): until then it is a copy of the broker, with all that
 * the broker knows, and must not be a process of that user. This is what such
 * a program is told: its supplementary groups, and "UID:GID" for its arguments.
 */
#define CHILD_USER_MAX 24
void child_set_groups(const gid_t *groups, size_t ngroups);
char *child_user(char text[CHILD_USER_MAX], uid_t uid, gid_t gid);

/* child_place() and child_run(). */
void child_exec(int program_fd, int control_fd, char *const argv[],
    char *const env[]) __attribute__((noreturn));

/* Environment: whether its log goes to the journal. Fills one place of env, or
 * none. */
void child_put_journal(char **env);

#endif
