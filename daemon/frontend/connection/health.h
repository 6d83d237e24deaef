/* SPDX-License-Identifier: ISC */
/*
 * Tells whether execd works. The front-end decides this itself and can
 * therefore answer even while the broker hangs.
 */
#ifndef HEALTH_H
#define HEALTH_H

#include <stdint.h>

/* The broker has sent a message. */
void health_heard(void);

/* Returns for how long the broker has sent nothing. */
int64_t health_silent_ms(void);

/* Starts asking the helpers regularly whether they answer. */
void health_watch(void);

/* Returns what is wrong, as a line with its newline, or NULL if all is well. */
const char *health_reason(void);

#endif
