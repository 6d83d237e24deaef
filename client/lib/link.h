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

/* link_open.c */
/* Takes the steps that need no event. */
void link_advance(struct execd_client *c);
/* In LINK_CONNECT: connect(2) has finished. */
void link_connected(struct execd_client *c);
/* In LINK_UPGRADE: there is something to read. */
void link_read_upgrade(struct execd_client *c);
void link_send_initialize(struct execd_client *c);

#endif
