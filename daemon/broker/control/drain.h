/* SPDX-License-Identifier: ISC */
/*
 * The operator's drain: no new session is opened, and open ones go on until
 * they end. The operator can undo it. The state survives the end of the broker,
 * but not the end of root's execd.
 */
#ifndef DRAIN_H
#define DRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct broker;
struct drain;

/* Reads the state that the previous broker left. */
void drain_init(struct drain *d);

/* Returns false if the state was so already. */
bool drain_begin(struct broker *m, uint32_t uid);
bool drain_end(struct broker *m, uint32_t uid);

#endif
