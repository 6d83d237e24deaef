/* SPDX-License-Identifier: ISC */
/*
 * Lines of the log that a program could not deliver, for its successor: the
 * successor counts them where they are missing.
 */
#ifndef LOG_LOST_H
#define LOG_LOST_H

#include <stdint.h>

/* The number of lines that this process and its children have lost, or keep in
 * vain. For a process that is about to exit: nothing is kept afterwards. */
uint64_t log_take_undelivered(void);

/* Counts these lines as lost by this process. */
void log_add_lost(uint64_t lines);

#endif
