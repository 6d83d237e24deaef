/* SPDX-License-Identifier: ISC */
/*
 * Does execd serve? The front-end knows it by itself, so it can say so while
 * the broker hangs.
 */
#ifndef HEALTH_H
#define HEALTH_H

/* The broker has said something. */
void health_heard(void);

/* Begins to ask the helpers from time to time. */
void health_watch(void);

/* What is wrong: a line with its end. NULL: all is well. */
const char *health_reason(void);

#endif
