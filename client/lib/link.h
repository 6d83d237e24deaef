/* SPDX-License-Identifier: ISC */
/*
 * The interface between link.c, which opens a connection, loses it and gives it
 * up, and link_ask.c, whose program says where the server is.
 */
#ifndef LINK_H
#define LINK_H

#include "client.h"

/* link.c: ends this attempt. The caller has set the error. */
void link_failed(struct execd_client *c, enum execd_failure failure);

/* link_ask.c */
/* Starts the program of an ask: URL. */
void link_ask(struct execd_client *c);
/* What to poll for while there is a lease: at most 2 entries in LINK_ASK, else
 * 1. Returns the number. */
size_t link_lease_prepare(const struct execd_client *c, struct pollfd *fds);
/* Reads the answer, or sees that the lease is over. */
void link_lease_events(struct execd_client *c);
bool link_lease_is_over(const struct execd_client *c);
/* Ends the client because the lease is over. */
void link_lease_failed(struct execd_client *c);
/* When the client ends behind a lease that is over; INT64_MAX: never. */
int64_t link_lease_at(const struct execd_client *c);

#endif
