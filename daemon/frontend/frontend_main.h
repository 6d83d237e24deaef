/* SPDX-License-Identifier: ISC */
/*
 * What main() of execd-frontend calls here.
 */
#pragma once

#include "base.h"
#include "frontend.h"

/* --- listener.c --------------------------------------------------------- */

/*
 * Listening sockets. The front-end accepts connections from them, but never
 * makes them.
 */

/* Takes over the listeners that the broker offers, with their descriptors. At
 * the start, a listener that cannot be set up is fatal; later it is closed. */
void listener_take(const struct offer *offer, bool start);

/* Prepares the descriptors of stdio. Call before the program is confined. */
void listener_prepare_stdio(const struct offer *offer);

/* Begins the connection over stdio, if there is one. */
void listener_take_stdio(const struct offer *offer);

/* Closes all listeners, so that no connection comes in any more. */
void listener_close_all(void);

/* Accepts nobody any more. Who was accepted and waits is let in all the
 * same. */
void listener_rest(void);

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

/* --- broker_client.c ---------------------------------------------------- */

/*
 * The front-end's side of the control channel: handles answers and events of
 * the broker through a table. Requests are in broker_request.h.
 */

/* Waits for the whole configuration. Any other message is fatal. The
 * descriptors in *offer are the caller's. */
void broker_wait_configure(struct offer *offer);

/* Handles the control channel in the event loop from now on. */
void broker_watch(void);

/* Returns true if another front-end takes over and nobody waits here. */
bool broker_may_leave(void);

/* --- confine.c ---------------------------------------------------------- */

/*
 * Confines the front-end before it reads a byte of a client.
 */

/*
 * Called when everything has been opened and loaded, and before anybody was
 * heard. `user` is "UID:GID" from root's execd: this is whom the program
 * becomes, and every step must succeed, or the program ends. NULL means an
 * ordinary user: the steps that the kernel permits are made. *ready says which
 * steps succeeded.
 */
void confine_privileges(const char *user, struct control_ready *ready);

/* Takes the other steps, with what the broker has said. */
void confine(const struct offer *offer, struct control_ready *ready);
