/* SPDX-License-Identifier: ISC */
/*
 * The user's terminal, which becomes raw and is restored, and the signals for
 * the command that come from it or from a script.
 */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>

/* Returns 0, or -errno if standard input is not a terminal. */
int terminal_raw(void);
struct run;

/* Blocks the signals that are meant for the command and reads them from a
 * signalfd. Returns 0, or an exit status after a message. */
int run_signals_begin(struct run *r);
void run_signals_end(struct run *r);

/* Does nothing unless the terminal is raw. Also runs at exit(3). */
void terminal_restore(void);
/* False: the size is unknown. */
bool terminal_size(unsigned int *rows, unsigned int *cols);

#endif
