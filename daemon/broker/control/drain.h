/* SPDX-License-Identifier: ISC */
/*
 * Drained by the operator: no new session is opened, and those there are go on
 * until they end. Undone by another word of the operator's. It is kept over the
 * broker's end, and not over that of root's execd.
 */
#ifndef DRAIN_H
#define DRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct broker;
struct drain;

/* What the broker before was told. */
void drain_init(struct drain *d);

/* False: it was so already. */
bool drain_begin(struct broker *m, uint32_t uid);
bool drain_end(struct broker *m, uint32_t uid);

#endif
