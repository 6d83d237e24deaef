/* SPDX-License-Identifier: ISC */
/*
 * Puts the user's terminal into raw mode. It is restored whenever the program
 * can notice that it ends.
 */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>

/* Returns 0, or -errno if standard input is not a terminal. */
int terminal_raw(void);
/* Does nothing unless the terminal is raw. Also runs at exit(3). */
void terminal_restore(void);
/* Restores raw mode after SIGCONT: a shell may have changed the mode. */
void terminal_raw_again(void);
/* False: the size is unknown. */
bool terminal_size(unsigned int *rows, unsigned int *cols);

#endif
