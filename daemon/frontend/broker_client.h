/* SPDX-License-Identifier: ISC */
/*
 * The front-end's side of the control channel: answers and events, by table.
 * Requests are in broker_request.h.
 */
#ifndef BROKER_CLIENT_H
#define BROKER_CLIENT_H

struct offer;

/* Waits for all of it; anything else is fatal. The descriptors are the
 * caller's. */
void broker_wait_configure(struct offer *offer);

/* Serves the control channel from now on. */
void broker_watch(void);

#endif
