/*
 * What every child of the monitor is given, and nothing else: 0 and 1
 * /dev/null, 2 the log, 3 the control channel (HOUSE.md).
 */
#ifndef CHILD_H
#define CHILD_H

/* Default dispositions, nothing blocked. */
void child_reset_signals(void);

/* Puts control_fd on CONTROL_FD and closes everything above. Fatal on
 * failure. */
void child_take_descriptors(int control_fd);

#endif
