/* SPDX-License-Identifier: ISC */
/*
 * The front-end's side of the control channel: handles answers and events of
 * the broker through a table. Requests are in broker_request.h.
 */
#ifndef BROKER_CLIENT_H
#define BROKER_CLIENT_H

struct offer;

/* Waits for the whole configuration. Any other message is fatal. The
 * descriptors in *offer are the caller's. */
void broker_wait_configure(struct offer *offer);

/* Handles the control channel in the event loop from now on. */
void broker_watch(void);

#endif
