/* SPDX-License-Identifier: ISC */
/*
 * The user's terminal in raw mode, and back, on every way out that a program
 * can notice.
 */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>

/* 0, or -errno: standard input is no terminal. */
int terminal_raw(void);
/* Does nothing unless it is raw. Also called at exit. */
void terminal_restore(void);
/* After a SIGCONT somebody else's mode may be there. */
void terminal_raw_again(void);
/* False: unknown. */
bool terminal_size(unsigned int *rows, unsigned int *cols);

#endif
