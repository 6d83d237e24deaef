/* SPDX-License-Identifier: ISC */
/*
 * The interface between link.c and link_open.c. link.c decides when a
 * connection is opened, lost and given up; link_open.c knows how it is opened.
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

/* link_open.c */
/* Takes the steps that need no event. */
void link_advance(struct execd_client *c);
/* In LINK_CONNECT: connect(2) has finished. */
void link_connected(struct execd_client *c);
/* In LINK_UPGRADE: there is something to read. */
void link_read_upgrade(struct execd_client *c);
void link_send_initialize(struct execd_client *c);

#endif
