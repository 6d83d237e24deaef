/* SPDX-License-Identifier: ISC */
/*
 * Confines the front-end before it reads a byte of a client.
 */
#ifndef CONFINE_H
#define CONFINE_H

#include "frontend.h"

/*
 * Called when everything has been opened and loaded, and before anybody was
 * heard. `user` is "UID:GID" from root's execd: this is whom the program
 * becomes, and every step must succeed, or the program ends. NULL means an
 * ordinary user: the steps that the kernel permits are made. *ready says which
 * steps succeeded.
 */
void confine_privileges(const char *user, struct control_ready *ready);

/* The rest, with what the broker has said. */
void confine(const struct offer *offer, struct control_ready *ready);

#endif
