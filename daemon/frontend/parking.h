/*
 * Sockets of clients that their runners have (handed.h) and that are needed
 * here again only for the last words. Where descriptors are short they have
 * none until then (inflight.h).
 */
#ifndef PARKING_H
#define PARKING_H

#include "connection.h"

/* That connections may have: set once, before the first. */
extern uint32_t parking_descriptors;

/* Has one more connection its two? */
bool parking_room(void);

/* Parks it, if that is needed; its events are not watched then. One that
 * cannot be parked keeps its descriptor. */
void parking_put(struct connection *c);

/* Whatever becomes of the client now: its socket is in in_fd and out_fd. */
void parking_take(struct connection *c);

#endif
