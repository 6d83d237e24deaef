/*
 * What every child of the monitor is given, and nothing else: 0 and 1
 * /dev/null, 2 the log, 3 the control channel (HOUSE.md).
 */
#ifndef CHILD_H
#define CHILD_H

/* Default dispositions, nothing blocked. */
void child_reset_signals(void);

/* Puts control_fd on CONTROL_FD and the program beside it; nothing is open
 * above, however much was. Limits of open files come after this. Fatal on
 * failure. */
void child_place(int program_fd, int control_fd);

/* Executes what was placed. Fatal on failure. */
void child_run(char *const argv[], char *const env[]) __attribute__((noreturn));

/* Both. */
void child_exec(int program_fd, int control_fd, char *const argv[],
    char *const env[]) __attribute__((noreturn));

#endif
