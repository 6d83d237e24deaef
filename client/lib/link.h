/* SPDX-License-Identifier: ISC */
/*
 * What link.c, which knows when a connection is opened, lost and given up, and
 * link_open.c, which knows how it is opened, tell each other.
 */
#ifndef LINK_H
#define LINK_H

#include "client.h"

/* link.c: this attempt is over; the error is set. */
void link_failed(struct execd_client *c, enum execd_failure failure);

/* link_open.c */
/* Steps that need no event. */
void link_advance(struct execd_client *c);
/* LINK_CONNECT: the kernel has something to tell. */
void link_connected(struct execd_client *c);
/* LINK_UPGRADE: there is something to read. */
void link_read_upgrade(struct execd_client *c);
void link_send_initialize(struct execd_client *c);

#endif
