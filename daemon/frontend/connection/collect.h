/* SPDX-License-Identifier: ISC */
/*
 * Messages that cannot go on as they come are put together in a buffer: those
 * before a session, and lines. Before a session nobody else answers for their
 * memory, so all of these together have a limit.
 */
#ifndef COLLECT_H
#define COLLECT_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

/* Appends. False: it is too long, or too much waits in other messages. */
bool collect(struct buf *message, const void *p, size_t len);

/* The message so far is the caller's. */
struct buf collect_take(struct buf *message);

/* Nobody wants it. */
void collect_drop(struct buf *message);

#endif
