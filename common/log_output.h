/*
 * How lines get to descriptor 2, and what happens when they do not. For log.c.
 */
#ifndef LOG_OUTPUT_H
#define LOG_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the line, or keeps it for later, or counts it as lost. */
void log_output_put(const char *line, size_t len);

/* Writes what was kept. False while something is left. */
bool log_output_drain(void);

/* How many lines were lost; from now on none was. */
uint64_t log_output_take_lost(void);

#endif
