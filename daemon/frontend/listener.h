/* SPDX-License-Identifier: ISC */
/*
 * Listening sockets. The front-end accepts connections from them, but never
 * makes them.
 */
#ifndef LISTENER_H
#define LISTENER_H

#include <stdbool.h>
#include <stdint.h>

struct offer;

/* Takes over the listeners that the broker offers, with their descriptors. At
 * the start, a listener that cannot be set up is fatal; later it is closed. */
void listener_take(const struct offer *offer, bool start);

/* Prepares the descriptors of stdio. Call before the program is confined. */
void listener_prepare_stdio(const struct offer *offer);

/* Begins the connection over stdio, if there is one. */
void listener_take_stdio(const struct offer *offer);

/* Closes all listeners, so that no connection comes in any more. */
void listener_close_all(void);

/* Accepts everybody who waits. Returns true if there is no connection then, and
 * nobody waits to be admitted. */
bool listener_is_idle(void);

/*
 * A proxy in front of execd asks this agent how busy the host is
 * (execd.conf(5), `serve`). Whoever connects gets one line, and nothing that he
 * sends is read. So nobody is admitted or penalised here, and a host under
 * attack still answers.
 */

/* The broker says how much this host can take. */
void agent_set_room(uint8_t percent);

/* Closes the connections whose other side has not closed yet. */
void agent_end(void);

#endif
