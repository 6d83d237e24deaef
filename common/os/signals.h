/* SPDX-License-Identifier: ISC */
/*
 * Signals that a program of execd has no use for.
 */
#pragma once

#include <stdbool.h>

/*
 * From here on no signal ends or stops this program that anybody who may signal
 * it can send by mistake: SIGALRM, SIGIO, SIGUSR1, the real-time signals and
 * their like, SIGPIPE, and SIGXFSZ, after which write(2) says EFBIG. `hangup`:
 * nor does SIGHUP, of a program that no terminal has started. They are blocked,
 * so whoever reads one of them with signalfd(2) still gets it, and what this
 * program executes has to unblock them (children_reset_signals()). Those that
 * ask a program to end or to stop, and those that say that it is broken, stay
 * as they are.
 */
void signals_ignore_unused(bool hangup);
