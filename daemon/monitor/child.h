/*
 * What every child of the monitor is given, and nothing else: 0 and 1
 * /dev/null, 2 the log, 3 the control channel (HOUSE.md).
 */
#ifndef CHILD_H
#define CHILD_H

/* Default dispositions, nothing blocked. */
void child_reset_signals(void);

/* Executes the program behind program_fd with control_fd on CONTROL_FD and
 * nothing above, and with the limit of descriptors that the monitor was
 * started with. Fatal on failure. */
void child_exec(int program_fd, int control_fd, char *const argv[],
    char *const env[]) __attribute__((noreturn));

#endif
