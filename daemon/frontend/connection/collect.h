/* SPDX-License-Identifier: ISC */
/*
 * Collects messages in a buffer that cannot be relayed piece by piece: messages
 * before a session, and lines. No session is charged for their memory, so all
 * of them together have a limit.
 */
#ifndef COLLECT_H
#define COLLECT_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

/* Appends to the message. Returns false if it is too long, or if all messages
 * together hold too much. */
bool collect(struct buf *message, const void *p, size_t len);

/* Returns the message, whose buffer is then the caller's. */
struct buf collect_take(struct buf *message);

/* Discards the message. */
void collect_drop(struct buf *message);

#endif
