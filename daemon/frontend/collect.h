/*
 * Messages that cannot go on as they come are put together in c->message: those
 * before a session, and lines. Before a session nobody else answers for their
 * memory, so all of these together have a limit.
 */
#ifndef COLLECT_H
#define COLLECT_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

struct connection;

/* Appends. False: it is too long, or too much waits in other messages. */
bool collect(struct connection *c, const void *p, size_t len);

/* The message so far is the caller's. */
struct buf collect_take(struct connection *c);

/* Nobody wants it. */
void collect_drop(struct connection *c);

#endif
