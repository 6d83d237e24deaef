/* SPDX-License-Identifier: ISC */
/*
 * Signals that a program of execd has no use for.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

/*
 * From here on no signal ends this program that anybody who may signal it can
 * send by mistake: SIGALRM, SIGIO, SIGPROF and their like, SIGPIPE, and
 * SIGXFSZ, after which write(2) says EFBIG. A program that it executes has the
 * defaults again, but for SIGPIPE (children_reset_signals()). Those that ask a
 * program to end or to do something, and those that say that it is broken, stay
 * as they are.
 */
void signals_ignore_unused(void);

#endif
