/* SPDX-License-Identifier: ISC */
/*
 * How lines get to descriptor 2, and what happens when they do not. For log.c.
 */
#ifndef LOG_OUTPUT_H
#define LOG_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_QUEUE_BYTES 16384

/* Lines that found no room yet, and how many were lost. */
struct log_queue {
	size_t len;
	uint64_t lost;
	char text[LOG_QUEUE_BYTES - sizeof(size_t) - sizeof(uint64_t)];
};

/* The parts of it, for a program that executes its next version: lines that
 * wait, and the descriptors of a pipe of our own, or -1. */
struct log_queue *log_output_parts(int **relay_in, int **relay_out);

/* Writes the line, or keeps it for later, or counts it as lost. */
void log_output_put(const char *line, size_t len);

/* Writes what was kept. False while something is left. */
bool log_output_drain(void);

/* How many lines were lost; from now on none was. */
uint64_t log_output_take_lost(void);

#endif
