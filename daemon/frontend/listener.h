/* SPDX-License-Identifier: ISC */
/*
 * Listening sockets: accepted from, never made here.
 */
#ifndef LISTENER_H
#define LISTENER_H

#include <stdbool.h>

struct offer;

/* Makes the listeners that the broker offers; the descriptors are taken
 * over. At the start one that cannot be is fatal, later it does not listen. */
void listener_take(const struct offer *offer, bool start);

/* Before this program is confined: what stdio's descriptors are. */
void listener_prepare_stdio(const struct offer *offer);

/* The one connection over stdio, if there is one; it asks the broker. */
void listener_take_stdio(const struct offer *offer);

/* No new connections. */
void listener_close_all(void);

#endif
