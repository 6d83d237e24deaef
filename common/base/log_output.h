/* SPDX-License-Identifier: ISC */
/*
 * Writes lines to descriptor 2 and handles the lines that cannot be written.
 * For log.c, and for a program that executes its next version.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_QUEUE_BYTES 16384

/* Lines that could not be written yet, and the number of lines lost. */
struct log_queue {
	size_t len;
	uint64_t lost;	    /* and not told yet */
	uint64_t ever_lost; /* by this process */
	char text[LOG_QUEUE_BYTES - sizeof(size_t) - 2 * sizeof(uint64_t)];
};

/* Returns the lines that wait, for a program that executes its next version.
 */
struct log_queue *log_output_queue(void);

/* Writes the line, keeps it for later, or counts it as lost. */
void log_output_put(const char *line, size_t len);

/* Writes the lines that were kept. Returns false while some remain. */
bool log_output_drain(void);

/* Returns how many lines were lost and resets the count. */
uint64_t log_output_take_lost(void);

/* --- log_lost.c --------------------------------------------------------- */

/*
 * Lines of the log that a program could not deliver, for its successor: the
 * successor counts them where they are missing.
 */

/* Returns the number of lines that this process has lost, or keeps in vain. For
 * a process that is about to exit: nothing is kept afterwards. */
uint64_t log_take_undelivered(void);

/* Counts these lines as lost by this process. */
void log_add_lost(uint64_t lines);
